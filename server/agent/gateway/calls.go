package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/agent/protocol"
)

// Calls of one agent: how many are answered at a time, and how many wait for that.
const (
	maxCalls        = 8
	maxWaitingCalls = 256
	maxFilePart     = 1 << 20
)

// call answers a call of a handler, later if there are too many.
func (l *link) call(m *protocol.CallMessage) error {
	id, err := uuid.Parse(m.ID)
	if err != nil || !l.has(id) {
		l.returned(m, http.StatusForbidden, message("the command does not run on this agent"))
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.running < maxCalls:
		l.running++
		go l.answerCalls(m)
	case len(l.waiting) < maxWaitingCalls:
		l.waiting = append(l.waiting, m)
	default:
		return violation("too many calls wait for an answer")
	}
	return nil
}

// answerCalls answers a call, and those that wait.
func (l *link) answerCalls(m *protocol.CallMessage) {
	for m != nil {
		if l.g.calls.Acquire(l.calling, 1) != nil {
			return // the link has ended
		}
		code, body := l.g.answer(l.calling, l, m)
		l.g.calls.Release(1)
		l.returned(m, code, body)
		l.mu.Lock()
		if m = nil; len(l.waiting) > 0 {
			m, l.waiting = l.waiting[0], l.waiting[1:]
		} else {
			l.running--
		}
		l.mu.Unlock()
	}
}

func (l *link) returned(m *protocol.CallMessage, code int, body json.RawMessage) {
	if len(body) > protocol.MaxMessage-1024 {
		code, body = http.StatusRequestEntityTooLarge, message("the answer is too large for an agent; ask for less")
	}
	l.post(protocol.ReturnedMessage{Type: protocol.Returned, ID: m.ID, Call: m.Call, Code: code, Body: body})
}

func message(text string) json.RawMessage {
	body, _ := json.Marshal(map[string]string{"message": text}) // a string can always be encoded
	return body
}

// answer makes a call. Code 0 means that handlers may not make it.
func (g *Gateway) answer(ctx context.Context, l *link, m *protocol.CallMessage) (int, json.RawMessage) {
	switch m.Method {
	case protocol.FileMethod, protocol.StatFileMethod, protocol.PutFileMethod:
		return g.answerFile(ctx, l, m)
	}
	if g.c.Desk == nil {
		return 0, nil
	}
	desk, err := g.c.Desk(l.who.Environment)
	if err != nil {
		return codeOf(err), message(err.Error())
	}
	code, body, known := desk.Call(ctx, m.Method, m.Positional, m.Args)
	if !known {
		return 0, nil
	}
	return code, body
}

// codeOf returns the HTTP status of an error.
func codeOf(err error) int {
	switch fault.KindOf(err) {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.TooMany:
		return http.StatusTooManyRequests
	case fault.Unavailable, fault.Exhausted:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// answerFile reads or stores a file of the environment.
func (g *Gateway) answerFile(ctx context.Context, l *link, m *protocol.CallMessage) (int, json.RawMessage) {
	if g.c.Files == nil {
		return 0, nil
	}
	files, err := g.c.Files(l.who.Environment)
	if err != nil {
		return codeOf(err), message(err.Error())
	}
	var a struct {
		Hash   string
		Offset int
		Length int
		Data   []byte
	}
	coded, err := json.Marshal(m.Args)
	if err == nil {
		err = json.Unmarshal(coded, &a)
	}
	if err != nil {
		return http.StatusBadRequest, message("the arguments of " + m.Method + " are not as the protocol says")
	}
	var out any
	switch m.Method {
	case protocol.PutFileMethod:
		out, err = files.PutFile(ctx, a.Data)
	case protocol.StatFileMethod:
		_, err = files.File(ctx, a.Hash)
		out = err == nil
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
	default:
		var content []byte
		if content, err = files.File(ctx, a.Hash); err == nil {
			from := min(max(a.Offset, 0), len(content))
			to := min(from+min(max(a.Length, 0), maxFilePart), len(content))
			out = map[string]any{
				"size": len(content), "data": base64.StdEncoding.EncodeToString(content[from:to]),
			}
		}
	}
	if err != nil {
		return codeOf(err), message(err.Error())
	}
	body, err := json.Marshal(out)
	if err != nil {
		return http.StatusInternalServerError, message(err.Error())
	}
	return http.StatusOK, body
}
