package target

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/agent/protocol"
)

const (
	// callWait is how long a handler's call waits for a connection, and then for its answer.
	callWait = time.Minute
	// filePart is how much of a file is read with one call, and putMost what can be stored with one.
	filePart = 1 << 20
	putMost  = 2 << 20
)

// commandKey is the key of a context's command.
type commandKey struct{}

// desk answers the calls of handlers by asking the server. It implements executor.Desk and executor.Files.
type desk struct{ a *Agent }

// Call implements executor.Desk.
func (d desk) Call(
	ctx context.Context,
	name string,
	positional []json.RawMessage,
	named map[string]json.RawMessage,
) (int, json.RawMessage, bool) {
	r, err := d.call(ctx, name, positional, named)
	if err != nil {
		body, _ := json.Marshal(map[string]string{"message": err.Error()}) // a string can always be encoded
		return http.StatusServiceUnavailable, body, true
	}
	return r.Code, r.Body, r.Code != 0
}

func (d desk) call(
	ctx context.Context,
	name string,
	positional []json.RawMessage,
	named map[string]json.RawMessage,
) (*protocol.ReturnedMessage, error) {
	command, ok := ctx.Value(commandKey{}).(string)
	if !ok {
		return nil, fault.New("target.call", fault.Internal, "this call belongs to no command")
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	l, err := d.a.awaitLink(ctx)
	if err != nil {
		return nil, fault.Wrap("target.call", fault.Unavailable, err).Say("there is no connection to the server")
	}
	return l.call(ctx, protocol.CallMessage{
		Type: protocol.Call, ID: command, Method: name, Args: named, Positional: positional,
	})
}

// File implements executor.Files: the sources of handlers are contents, anything else is asked for.
func (d desk) File(ctx context.Context, hash string) ([]byte, error) {
	w := d.a.work
	w.mu.Lock()
	content, ok := w.sources[hash]
	w.mu.Unlock()
	if ok {
		return w.contents.read(content)
	}
	var out []byte
	for {
		var part struct {
			Size int    `json:"size"`
			Data []byte `json:"data"`
		}
		args := map[string]any{"hash": hash, "offset": len(out), "length": filePart}
		if err := d.ask(ctx, protocol.FileMethod, args, &part); err != nil {
			return nil, err
		}
		out = append(out, part.Data...)
		if len(out) >= part.Size || len(part.Data) == 0 {
			break
		}
	}
	if sum := sha1.Sum(out); hex.EncodeToString(sum[:]) != hash {
		return nil, fault.New("target.File", fault.Unavailable, "the file "+hash+" arrived damaged")
	}
	return out, nil
}

// PutFile implements executor.Files.
func (d desk) PutFile(ctx context.Context, content []byte) (hash string, err error) {
	if len(content) > putMost {
		return "", fault.New("target.PutFile", fault.Exhausted, fmt.Sprintf(
			"a handler of a remote agent can store files of up to %d bytes; this one has %d", putMost, len(content)))
	}
	err = d.ask(ctx, protocol.PutFileMethod, map[string]any{"data": content}, &hash)
	return hash, err
}

// ask makes a call and decodes what it returns.
func (d desk) ask(ctx context.Context, method string, args map[string]any, into any) error {
	named := map[string]json.RawMessage{}
	for name, value := range args {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		named[name] = text
	}
	r, err := d.call(ctx, method, nil, named)
	if err != nil {
		return err
	}
	if r.Code/100 == 2 {
		return json.Unmarshal(r.Body, into)
	}
	var why struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(r.Body, &why)
	kind := fault.Unavailable
	if r.Code == http.StatusNotFound {
		kind = fault.NotFound
	}
	return fault.New("target.call", kind, fmt.Sprintf("the server answers %s with %d: %s", method, r.Code, why.Message))
}
