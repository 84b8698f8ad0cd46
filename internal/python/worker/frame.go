package worker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"ordain.dev/ordain/internal/jsontext"
)

// MaxFrame is the size of the largest frame that either side may send.
const MaxFrame = 64 << 20

// ErrFrame says that what came over the pipe is not the protocol.
var ErrFrame = errors.New("not a frame of the worker protocol")

// frame is any message: a request (ID and Op), a reply (Re), or a notice (Op).
type frame struct {
	ID   int64           `json:"id"`
	Re   int64           `json:"re"`
	Op   string          `json:"op"`
	For  int64           `json:"for"`
	Args json.RawMessage `json:"args"`
	OK   json.RawMessage `json:"ok"`
	Err  *Failure        `json:"err"`
}

// readFrame reads one frame. It gives io.EOF at an end between two frames and
// io.ErrUnexpectedEOF inside one. A large length costs no memory until the
// bytes arrive.
func readFrame(r io.Reader) (frame, error) {
	var f frame
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxFrame {
		return f, fmt.Errorf("%w: length %d is above %d", ErrFrame, n, MaxFrame)
	}
	body, err := readBody(r, int(n))
	if err != nil {
		return f, err
	}
	if f.quick(body) {
		return f, nil
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("%w: %v", ErrFrame, err)
	}
	if f.Op == "" && f.Re == 0 {
		return f, fmt.Errorf("%w: neither a request, a reply nor a notice", ErrFrame)
	}
	return f, nil
}

// quick reads the frames that there are most of, replies, log lines and results of
// calls, in the form that the worker gives them, without decoding them twice:
//
//	{"re":7,"ok":…}    {"op":"log","args":…,"for":7}    {"op":"result","args":…}
//
// Any other form is for the decoder; false leaves f as it was.
func (f *frame) quick(body []byte) bool {
	if rest, is := bytes.CutPrefix(body, []byte(`{"re":`)); is {
		id, rest := leadingID(rest)
		value, is := bytes.CutPrefix(rest, []byte(`,"ok":`))
		if value, ends := bytes.CutSuffix(value, []byte("}")); id > 0 && is && ends && json.Valid(value) {
			f.Re, f.OK = id, value
			return true
		}
		return false
	}
	if rest, is := bytes.CutPrefix(body, []byte(resultFrame)); is {
		value, ends := bytes.CutSuffix(rest, []byte("}"))
		if !ends || !json.Valid(value) {
			return false
		}
		f.Op, f.Args = "result", value
		return true
	}
	rest, is := bytes.CutPrefix(body, []byte(`{"op":"log","args":`))
	at := bytes.LastIndex(rest, []byte(`,"for":`))
	if !is || at < 0 {
		return false
	}
	id, end := leadingID(rest[at+len(`,"for":`):])
	if id == 0 || string(end) != "}" || !json.Valid(rest[:at]) {
		return false
	}
	f.Op, f.Args, f.For = "log", rest[:at], id
	return true
}

// resultFrame is how the result of a call begins.
const resultFrame = `{"op":"result","args":`

// leadingID reads a positive number from the beginning; 0 when there is none.
func leadingID(b []byte) (id int64, rest []byte) {
	for len(b) > 0 && b[0] >= '0' && b[0] <= '9' && id < 1<<55 {
		if id == 0 && b[0] == '0' {
			return 0, b
		}
		id = id*10 + int64(b[0]-'0')
		b = b[1:]
	}
	return id, b
}

func readBody(r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(n, step))
	for len(body) < n {
		start := len(body)
		take := min(n-start, max(step, start)) // grows as the bytes prove to be there
		if cap(body) < start+take {
			grown := make([]byte, start, start+take)
			copy(grown, body)
			body = grown
		}
		body = body[:start+take]
		if _, err := io.ReadFull(r, body[start:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return body, nil
}

// Verbatim is JSON that the caller has written himself: as the arguments of a
// call it goes as it is, without being looked at.
type Verbatim []byte

// MarshalJSON implements json.Marshaler.
func (v Verbatim) MarshalJSON() ([]byte, error) { return v, nil }

// packedRequest is packed for a request.
func packedRequest(r request) ([]byte, error) {
	args, is := r.Args.(Verbatim)
	if !is {
		return packed(r)
	}
	out := append(make([]byte, 4, 64+len(r.Op)+len(args)), `{"id":`...)
	out = strconv.AppendInt(out, r.ID, 10)
	out = jsontext.AppendString(append(out, `,"op":`...), r.Op)
	out = append(append(out, `,"args":`...), args...)
	if r.Behind {
		out = append(out, `,"behind":true`...)
	}
	out = append(out, '}')
	return framed(out)
}

// framed fills in the length in front of a message, which has four bytes of room for it.
func framed(out []byte) ([]byte, error) {
	n := len(out) - 4
	if n > MaxFrame {
		return nil, fmt.Errorf("pyworker: a frame of %d bytes is above the limit of %d", n, MaxFrame)
	}
	binary.BigEndian.PutUint32(out, uint32(n))
	return out, nil
}

// packed puts the length before a message, in one slice for one write.
func packed(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("pyworker: marshal a frame: %w", err)
	}
	return framed(append(make([]byte, 4, 4+len(body)), body...))
}

type request struct {
	ID     int64  `json:"id"`
	Op     string `json:"op"`
	Args   any    `json:"args"`
	Behind bool   `json:"behind,omitempty"`
}

type notice struct {
	Op   string `json:"op"`
	Args any    `json:"args"`
}

type success struct {
	Re int64 `json:"re"`
	OK any   `json:"ok"`
}

type refusal struct {
	Re  int64    `json:"re"`
	Err *Failure `json:"err"`
}

// answered packs the reply to a request of the worker.
func answered(id int64, value any, err error) ([]byte, error) {
	if err == nil {
		out, packErr := packed(success{Re: id, OK: value})
		if packErr == nil {
			return out, nil
		}
		err = packErr
	}
	var f *Failure
	if !errors.As(err, &f) {
		f = &Failure{Kind: "error", Message: err.Error()}
	}
	return packed(refusal{Re: id, Err: f})
}
