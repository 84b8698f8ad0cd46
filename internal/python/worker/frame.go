package worker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxFrame is the size of the largest frame that either side may send.
const MaxFrame = 64 << 20

// ErrFrame reports that the worker sent something that is not a frame of the protocol.
var ErrFrame = errors.New("not a frame of the worker protocol")

// frame is any message: a request (ID and Op), a reply (Re) or a notice (Op).
type frame struct {
	ID   int64           `json:"id"`
	Re   int64           `json:"re"`
	Op   string          `json:"op"`
	For  int64           `json:"for"`
	Args json.RawMessage `json:"args"`
	OK   json.RawMessage `json:"ok"`
	Err  *Failure        `json:"err"`
}

// readFrame reads one frame. It returns io.EOF when the stream ends between two
// frames and io.ErrUnexpectedEOF when it ends within one. A frame that claims to
// be large takes no memory before its bytes arrive.
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
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("%w: %v", ErrFrame, err)
	}
	if f.Op == "" && f.Re == 0 {
		return f, fmt.Errorf("%w: neither a request, a reply nor a notice", ErrFrame)
	}
	return f, nil
}

// resultFrame is how the frame of a notice `result` begins.
const resultFrame = `{"op":"result","args":`

func readBody(r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(n, step))
	for len(body) < n {
		start := len(body)
		take := min(n-start, max(step, start)) // grows with the bytes that have arrived
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

// packed marshals a message and puts its length before it, so that one write sends both.
func packed(v any) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 4)) // the length comes here
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		return nil, fmt.Errorf("marshal a frame for the Python worker: %w", err)
	}
	packet := b.Bytes()[:b.Len()-1] // without the final newline
	size := len(packet) - 4
	if size > MaxFrame {
		return nil, fmt.Errorf("a frame for the Python worker has %d bytes, above the limit of %d", size, MaxFrame)
	}
	binary.BigEndian.PutUint32(packet, uint32(size))
	return packet, nil
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

// answered packs our reply to a request of the worker: a value or an error.
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
