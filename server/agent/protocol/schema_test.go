package protocol_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"ordain.dev/ordain/server/agent/protocol"
)

const schemaFile = "../../../docs/agent-protocol.schema.json"

// described are the Go types of what the schema defines.
var described = map[string]any{
	"machine": protocol.Machine{}, "hello": protocol.HelloMessage{}, "pong": protocol.PongMessage{},
	"stored": protocol.StoredMessage{}, "progress": protocol.ProgressMessage{}, "answer": protocol.AnswerMessage{},
	"call": protocol.CallMessage{}, "renew": protocol.RenewMessage{}, "welcome": protocol.WelcomeMessage{},
	"ping": protocol.PingMessage{}, "content": protocol.ContentMessage{}, "command": protocol.CommandMessage{},
	"cancel": protocol.CancelMessage{}, "recorded": protocol.RecordedMessage{},
	"returned": protocol.ReturnedMessage{}, "rotate": protocol.RotateMessage{},
	"certificate": protocol.CertificateMessage{}, "bye": protocol.ByeMessage{}, "payload": protocol.Payload{},
	"task": protocol.Task{}, "resource": protocol.Resource{}, "blueprint": protocol.Blueprint{},
	"wheel": protocol.Wheel{}, "answer_body": protocol.AnswerBody{}, "fact": protocol.Fact{},
	"join_token": protocol.JoinToken{}, "join_request": protocol.JoinRequest{}, "join_answer": protocol.JoinAnswer{},
	"refusal": protocol.Refusal{},
}

// undescribed are the definitions without a Go type of their own.
var undescribed = []string{"from_agent", "from_server", "hash", "id", "line"}

type definition struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

func readSchema(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema.Defs
}

// The schema has a definition for each Go type, with the same keys, of which the same are required.
func TestTypesAndSchemaHaveTheSameKeys(t *testing.T) {
	defs := readSchema(t)
	for name, value := range described {
		var d definition
		if err := json.Unmarshal(defs[name], &d); err != nil {
			t.Errorf("the schema does not define %s: %v", name, err)
			continue
		}
		kind := reflect.TypeOf(value)
		var keys, required []string
		for i := range kind.NumField() {
			key, options, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			keys = append(keys, key)
			if options != "omitempty" {
				required = append(required, key)
			}
		}
		var defined []string
		for key := range d.Properties {
			defined = append(defined, key)
		}
		for _, list := range [][]string{keys, required, defined, d.Required} {
			slices.Sort(list)
		}
		if !slices.Equal(keys, defined) {
			t.Errorf("%s has the keys %v in Go and %v in the schema", name, keys, defined)
		}
		if !slices.Equal(required, d.Required) {
			t.Errorf("of %s, Go always writes %v, and the schema requires %v", name, required, d.Required)
		}
	}
	for name := range defs {
		if _, ok := described[name]; !ok && !slices.Contains(undescribed, name) {
			t.Errorf("the schema defines %s, for which there is no Go type", name)
		}
	}
}

const (
	someID   = "0f6b7c1e-0b51-4a52-9f0e-5d2f0a7f6f10"
	someHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// samples are messages with a value for every key.
var samples = map[string]any{
	"hello": protocol.HelloMessage{Type: protocol.Hello, Protocol: 1, Program: "ordain 1.0",
		Machine: protocol.Machine{OS: "linux", Arch: "amd64", Libc: "glibc-2.36", Pythons: []string{"3.11"}},
		Seen:    17, Running: []string{someID}, Unrecorded: []string{someID}, Holds: []string{someHash}},
	"pong":     protocol.PongMessage{Type: protocol.Pong, ID: 5},
	"stored":   protocol.StoredMessage{Type: protocol.Stored, Hash: someHash, Error: "the disk is full"},
	"progress": protocol.ProgressMessage{Type: protocol.Progress, ID: someID, Lines: []json.RawMessage{someLine}},
	"answer":   protocol.AnswerMessage{Type: protocol.Answer, ID: someID, Part: 1, Last: true, Data: []byte("{}")},
	"call": protocol.CallMessage{Type: protocol.Call, ID: someID, Call: 7, Method: "get_param",
		Args: map[string]json.RawMessage{"id": json.RawMessage(`"x"`)}, Positional: []json.RawMessage{[]byte("1")}},
	"renew": protocol.RenewMessage{Type: protocol.Renew, Request: "-----BEGIN CERTIFICATE REQUEST-----"},
	"welcome": protocol.WelcomeMessage{Type: protocol.Welcome, Protocol: 1, Server: "1.0", Environment: someID,
		Agent: "router1", Now: time.Date(2026, 11, 25, 20, 0, 0, 0, time.UTC), PingSeconds: 10,
		MaxMessage: protocol.MaxMessage, MaxAnswer: protocol.MaxAnswer},
	"ping": protocol.PingMessage{Type: protocol.Ping, ID: 5},
	"content": protocol.ContentMessage{
		Type: protocol.Content,
		Hash: someHash,
		Size: 3,
		Data: []byte("abc"),
		Last: true,
	},
	"command": protocol.CommandMessage{Type: protocol.Command, Seq: 18, ID: someID, DeadlineMS: 600_000,
		Action: protocol.Deploy, Needs: []string{someHash}, Payload: protocol.Payload{
			Task: &protocol.Task{Resource: protocol.Resource{ID: "fs::File[router1,path=/etc/motd]", Version: 3,
				Attributes: json.RawMessage(`{"path":"/etc/motd"}`), Requires: []string{}}, Reason: "new version 3",
				Requires: map[string]string{"fs::File[router1,path=/a]": "deployed"}, Lanes: 1, TimeoutMS: 600_000},
			Blueprint: &protocol.Blueprint{Hash: "b", Python: "3.11",
				Modules: map[string]string{"inmanta_plugins.fs": "inmanta_plugins/fs/__init__.py"},
				Files:   map[string]string{"inmanta_plugins/fs/__init__.py": someHash},
				Wheels:  []protocol.Wheel{{Name: "x-1.0-py3-none-any.whl", Hash: someHash}}, Runtime: someHash},
			Variables: map[string]string{"PASSWORD": "x"}, Plain: []string{"HTTPS_PROXY"}, Hashes: []string{someHash},
		}},
	"cancel":   protocol.CancelMessage{Type: protocol.Cancel, ID: someID},
	"recorded": protocol.RecordedMessage{Type: protocol.Recorded, IDs: []string{someID}},
	"returned": protocol.ReturnedMessage{Type: protocol.Returned, ID: someID, Call: 7, Code: 200,
		Body: json.RawMessage(`{"parameter":null}`)},
	"rotate":      protocol.RotateMessage{Type: protocol.Rotate},
	"certificate": protocol.CertificateMessage{Type: protocol.Certificate, Certificate: "-----BEGIN CERTIFICATE-----"},
	"bye": protocol.ByeMessage{Type: protocol.Bye, Reason: protocol.Draining, Message: "the server stops",
		RetrySeconds: 2},
	"answer_body": protocol.AnswerBody{Status: "deployed", Change: "updated", Changes: json.RawMessage(`{}`),
		Facts:      []protocol.Fact{{Name: "n", Value: "v", Expires: true}},
		Discovered: map[string]json.RawMessage{"fs::File[a,path=/x]": []byte(`{}`)},
		Lines:      []json.RawMessage{someLine}, Unreachable: true, DurationMS: 12},
	"join_token": protocol.JoinToken{URL: "https://agents.example.org:8887", ID: someID,
		Secret: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", CA: someHash},
	"join_request": protocol.JoinRequest{Token: "ordain-join.x", Request: "-----BEGIN", Program: "ordain 1.0"},
	"join_answer": protocol.JoinAnswer{
		Certificate: "-----BEGIN",
		CA:          "-----BEGIN",
		Environment: someID,
		Agent:       "a",
		URL:         "https://x",
	},
	"refusal": protocol.Refusal{Message: "the token was used", Reason: "used"},
}

var someLine = json.RawMessage(
	`{"level":"INFO","msg":"changed","timestamp":"2026-11-25T20:00:00.000000+00:00","kwargs":{}}`,
)

// What Go writes fits the schema, and Go reads it again as the same message.
func TestMessagesFitTheSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	for name, sample := range samples {
		schema, err := compiler.Compile(schemaFile + "#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := protocol.Encode(sample)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		var head struct{ Type protocol.Type }
		if json.Unmarshal(text, &head) != nil || head.Type == "" {
			continue
		}
		decoded, err := protocol.DecodeFromServer(text)
		if _, unknown := decoded.(*protocol.Unknown); unknown {
			decoded, err = protocol.DecodeFromAgent(text)
		}
		if err != nil || !reflect.DeepEqual(reflect.ValueOf(decoded).Elem().Interface(), sample) {
			t.Errorf("%s is read as %+v, %v", name, decoded, err)
		}
	}
}

// Messages that break a rule are refused with a sentence about it.
func TestBrokenMessages(t *testing.T) {
	for text, says := range map[string]string{
		`[]`:                              "not an object",
		`{}`:                              `no "type"`,
		`{"type":3}`:                      "type",
		`{"type":"welcome"}`:              "no type of message",
		`{"type":"pong","id":"x"}`:        `"id" is a JSON string`,
		"{\"type\":\"pong\",\"id\":\xff}": "UTF-8",
		`{"type":"stored","hash":"../../etc/passwd"}`:                                     "SHA-256",
		`{"type":"answer","id":"1","last":true}`:                                          "id of a command",
		`{"type":"answer","id":"` + someID + `","part":-1,"data":"","last":true}`:         "part",
		`{"type":"answer","id":"` + someID + `","part":0,"data":"","last":false}`:         "empty",
		`{"type":"answer","id":"` + someID + `","part":0,"data":"?","last":true}`:         "",
		`{"type":"hello","protocol":1,"seen":-1}`:                                         "seen",
		`{"type":"hello","protocol":1,"running":["x"]}`:                                   "id of a command",
		`{"type":"call","id":"` + someID + `","call":1,"method":"","args":{}}`:            "method",
		`{"type":"renew","request":"` + strings.Repeat("x", protocol.MaxRequest+1) + `"}`: "request",
		`{"type":"pong","id":1,"x":"` + strings.Repeat("x", protocol.MaxMessage) + `"}`:   "a message has",
	} {
		if m, err := protocol.DecodeFromAgent([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80s: %v, %v", text, m, err)
		} else if len(err.Error()) > 500 {
			t.Errorf("%.80s: the error has %d bytes", text, len(err.Error()))
		}
	}
}

// Join tokens are read as they were written; anything else is refused.
func TestJoinTokens(t *testing.T) {
	token := samples["join_token"].(protocol.JoinToken)
	if got, err := protocol.ParseToken(" " + token.String() + "\n"); err != nil || got != token {
		t.Errorf("%+v, %v", got, err)
	}
	plain := token
	plain.URL = "http://agents.example.org"
	short := token
	short.Secret = "AAAA"
	for _, text := range []string{
		"", protocol.TokenPrefix, "ordain_pat_x", token.String()[:60], plain.String(), short.String(),
		protocol.TokenPrefix + strings.Repeat("A", 1<<20),
	} {
		if _, err := protocol.ParseToken(text); err == nil {
			t.Errorf("%.60s was accepted", text)
		}
	}
}

// A token for a provisioner is none for an agent, and the other way around; the error says so.
func TestTokensOfProvisioners(t *testing.T) {
	token := samples["join_token"].(protocol.JoinToken)
	if got, err := protocol.ParseProvisionerToken(" " + token.Provisioner() + "\n"); err != nil || got != token {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := protocol.ParseProvisionerToken(token.String()); err == nil ||
		!strings.Contains(err.Error(), "a token for an agent") {
		t.Errorf("an agent's token: %v", err)
	}
	if _, err := protocol.ParseToken(token.Provisioner()); err == nil ||
		!strings.Contains(err.Error(), "a token for a provisioner") {
		t.Errorf("a provisioner's token: %v", err)
	}
}

// No bytes of an agent make the decoder panic, and what it accepts keeps the limits.
func FuzzDecodeFromAgent(f *testing.F) {
	for name, sample := range samples {
		if text, err := protocol.Encode(sample); err == nil && name != "answer_body" {
			f.Add(text)
		}
	}
	f.Add([]byte(`{"type":"hello","protocol":1e400}`))
	f.Add([]byte(`{"type":"answer","data":"` + strings.Repeat("A", 100) + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := protocol.DecodeFromAgent(data)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		switch m := m.(type) {
		case *protocol.HelloMessage:
			if len(m.Holds) > protocol.MaxHolds || m.Seen < 0 {
				t.Error("a hello that breaks the limits")
			}
		case *protocol.AnswerMessage:
			if len(m.Data) > protocol.MaxPart || m.Part < 0 {
				t.Error("an answer that breaks the limits")
			}
			_, _ = protocol.DecodeAnswer(m.Data)
		}
		if _, err := protocol.Encode(m); err != nil {
			t.Errorf("a message that was read cannot be written: %v", err)
		}
	})
}
