package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Unknown is a message of a type that this version does not know. Agents ignore it.
type Unknown struct{ Type Type }

// DecodeFromAgent decodes and checks a message of an agent: a pointer to a HelloMessage, PongMessage, StoredMessage,
// ProgressMessage, AnswerMessage, CallMessage or RenewMessage. Its errors are for the agent's author; they repeat
// nothing long.
func DecodeFromAgent(data []byte) (any, error) {
	return decode(data, map[Type]func() checked{
		Hello:    func() checked { return &HelloMessage{} },
		Pong:     func() checked { return &PongMessage{} },
		Stored:   func() checked { return &StoredMessage{} },
		Progress: func() checked { return &ProgressMessage{} },
		Answer:   func() checked { return &AnswerMessage{} },
		Call:     func() checked { return &CallMessage{} },
		Renew:    func() checked { return &RenewMessage{} },
	})
}

// DecodeFromServer decodes and checks a message of a server: a pointer to its type, or to Unknown.
func DecodeFromServer(data []byte) (any, error) {
	m, err := decode(data, map[Type]func() checked{
		Welcome:     func() checked { return &WelcomeMessage{} },
		Ping:        func() checked { return &PingMessage{} },
		Content:     func() checked { return &ContentMessage{} },
		Command:     func() checked { return &CommandMessage{} },
		Cancel:      func() checked { return &CancelMessage{} },
		Recorded:    func() checked { return &RecordedMessage{} },
		Returned:    func() checked { return &ReturnedMessage{} },
		Rotate:      func() checked { return &RotateMessage{} },
		Certificate: func() checked { return &CertificateMessage{} },
		Bye:         func() checked { return &ByeMessage{} },
	})
	var unknown unknownType
	if errors.As(err, &unknown) {
		return &Unknown{Type(unknown)}, nil
	}
	return m, err
}

type checked interface{ check() error }

type unknownType Type

func (t unknownType) Error() string {
	return fmt.Sprintf("there is no type of message %.40q", string(t))
}

func decode(data []byte, types map[Type]func() checked) (any, error) {
	if len(data) > MaxMessage {
		return nil, fmt.Errorf("a message has %d bytes, and may have %d", len(data), MaxMessage)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("a message is not UTF-8")
	}
	var head struct {
		Type *Type `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, readable("a message", err)
	}
	if head.Type == nil {
		return nil, errors.New(`a message has no "type"`)
	}
	make, known := types[*head.Type]
	if !known {
		return nil, unknownType(*head.Type)
	}
	m := make()
	if err := json.Unmarshal(data, m); err != nil {
		return nil, readable("the message "+string(*head.Type), err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("the message %s: %w", *head.Type, err)
	}
	return m, nil
}

// readable names the key that is wrong, without the value.
func readable(what string, err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			return fmt.Errorf("%s is a JSON %s, not an object", what, kind.Value)
		}
		return fmt.Errorf("%s: %.80q is a JSON %s, which is not expected there", what, kind.Field, kind.Value)
	}
	return fmt.Errorf("%s is not JSON of the expected form: %.200s", what, err.Error())
}

func checkID(id string) error {
	if !isID.MatchString(id) {
		return fmt.Errorf("%.60q is not the id of a command", id)
	}
	return nil
}

func checkHashes(hashes []string) error {
	for _, h := range hashes {
		if !isHash.MatchString(h) {
			return fmt.Errorf("%.80q is not a SHA-256 in lower-case hexadecimal", h)
		}
	}
	return nil
}

func checkIDs(ids []string) error {
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return err
		}
	}
	return nil
}

const (
	maxProgram = 200 // bytes of a program's name, and of what describes a machine
	maxMethod  = 200
	maxPythons = 64
	maxReason  = 4096
)

func (m *HelloMessage) check() error {
	switch {
	case len(m.Holds) > MaxHolds:
		return fmt.Errorf("holds has %d contents, and may have %d", len(m.Holds), MaxHolds)
	case len(m.Running)+len(m.Unrecorded) > MaxCommands:
		return fmt.Errorf("running and unrecorded have more than %d commands", MaxCommands)
	case m.Seen < 0:
		return errors.New("seen is negative")
	case len(m.Program) > maxProgram || len(m.Machine.OS)+len(m.Machine.Arch)+len(m.Machine.Libc) > maxProgram:
		return fmt.Errorf("program or machine is longer than %d bytes", maxProgram)
	case len(m.Machine.Pythons) > maxPythons || slices.ContainsFunc(m.Machine.Pythons,
		func(p string) bool { return len(p) > 10 }):
		return errors.New("machine.pythons is too long")
	}
	return errors.Join(checkHashes(m.Holds), checkIDs(m.Running), checkIDs(m.Unrecorded))
}

func (m *PongMessage) check() error { return nil }

func (m *StoredMessage) check() error {
	if len(m.Error) > maxReason {
		m.Error = m.Error[:maxReason]
	}
	return checkHashes([]string{m.Hash})
}

func (m *ProgressMessage) check() error { return checkID(m.ID) }

func (m *AnswerMessage) check() error {
	switch {
	case m.Part < 0 || m.Part > MaxAnswer:
		return errors.New("part is out of range")
	case len(m.Data) > MaxPart:
		return fmt.Errorf("data has %d bytes, and may have %d", len(m.Data), MaxPart)
	case len(m.Data) == 0 && !m.Last:
		return errors.New("a part is empty")
	}
	return checkID(m.ID)
}

func (m *CallMessage) check() error {
	if len(m.Method) > maxMethod || m.Method == "" {
		return errors.New("method is missing or too long")
	}
	return checkID(m.ID)
}

func (m *RenewMessage) check() error {
	if len(m.Request) > MaxRequest {
		return fmt.Errorf("request has more than %d bytes", MaxRequest)
	}
	return nil
}

func (m *WelcomeMessage) check() error {
	if m.Protocol < Oldest || m.Protocol > Version {
		return fmt.Errorf(
			"the server speaks version %d of the protocol, this program %d to %d",
			m.Protocol,
			Oldest,
			Version,
		)
	}
	if m.PingSeconds <= 0 || m.PingSeconds > 3600 || m.MaxMessage <= 0 || m.MaxAnswer <= 0 {
		return errors.New("ping_seconds, max_message or max_answer is out of range")
	}
	return nil
}

func (m *PingMessage) check() error { return nil }

func (m *ContentMessage) check() error {
	switch {
	case m.Size < 0 || m.Offset < 0 || m.Offset > m.Size || m.Offset+int64(len(m.Data)) > m.Size:
		return errors.New("a part lies outside of the content")
	case len(m.Data) > MaxPart:
		return fmt.Errorf("data has %d bytes, and may have %d", len(m.Data), MaxPart)
	}
	return checkHashes([]string{m.Hash})
}

func (m *CommandMessage) check() error {
	if m.Seq <= 0 || m.DeadlineMS < 0 || m.DeadlineMS > math.MaxInt64/1_000_000 {
		return errors.New("seq or deadline_ms is out of range")
	}
	return errors.Join(checkID(m.ID), checkHashes(m.Needs), checkHashes(m.Payload.Hashes))
}

func (m *CancelMessage) check() error      { return checkID(m.ID) }
func (m *RecordedMessage) check() error    { return checkIDs(m.IDs) }
func (m *ReturnedMessage) check() error    { return checkID(m.ID) }
func (m *RotateMessage) check() error      { return nil }
func (m *CertificateMessage) check() error { return nil }
func (m *ByeMessage) check() error         { return nil }

// DecodeAnswer decodes and checks the JSON of an answer.
func DecodeAnswer(data []byte) (*AnswerBody, error) {
	var a AnswerBody
	if len(data) > MaxAnswer {
		return nil, fmt.Errorf("an answer has %d bytes, and may have %d", len(data), MaxAnswer)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, readable("an answer", err)
	}
	if !slices.Contains(Statuses, a.Status) {
		return nil, fmt.Errorf("an answer has the status %.40q, which does not exist", a.Status)
	}
	if a.DurationMS < 0 {
		a.DurationMS = 0
	}
	return &a, nil
}

// Encode returns a message as JSON. Messages of this package can always be encoded, unless they hold broken raw JSON.
func Encode(message any) ([]byte, error) { return json.Marshal(message) }
