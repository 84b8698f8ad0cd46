package executor

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/worker"
)

// answer serves the requests of a handler: files, and calls to the server.
func (r *taskRun) answer(op string, args json.RawMessage) (any, error) {
	ctx := r.answering
	var a struct {
		Hash   string `json:"hash"`
		Offset int    `json:"offset"`
		Length int    `json:"length"`
		Data   []byte `json:"data"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	switch op {
	case "file":
		content, err := r.file(ctx, a.Hash)
		if err != nil {
			return nil, asFailure(err)
		}
		from := min(max(a.Offset, 0), len(content))
		to := min(from+max(a.Length, 0), len(content))
		return map[string]any{"size": len(content), "data": base64.StdEncoding.EncodeToString(content[from:to])}, nil
	case "stat_file":
		_, err := r.file(ctx, a.Hash)
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		if err != nil {
			return nil, asFailure(err)
		}
		return true, nil
	case "put_file":
		hash, err := r.m.c.Files.PutFile(ctx, a.Data)
		if err != nil {
			return nil, asFailure(err)
		}
		return hash, nil
	case "call":
		return r.call(ctx, args)
	}
	return nil, &worker.Failure{Kind: "protocol", Message: "an executor does not answer " + op}
}

// call passes a handler's call on to the server.
func (r *taskRun) call(ctx context.Context, args json.RawMessage) (any, error) {
	var a struct {
		Name       string                     `json:"name"`
		Positional []json.RawMessage          `json:"positional"`
		Named      map[string]json.RawMessage `json:"named"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	if r.m.c.Desk == nil {
		return map[string]any{"code": 0}, nil
	}
	code, body, known := r.m.c.Desk.Call(ctx, a.Name, a.Positional, a.Named)
	if !known {
		code = 0
	}
	return map[string]any{"code": code, "body": body}, nil
}

// file returns a file. It keeps the last one, because handlers read files in parts.
func (r *taskRun) file(ctx context.Context, hash string) ([]byte, error) {
	if hash == r.readFileHash && hash != "" {
		return r.readFileContent, nil
	}
	content, err := r.m.c.Files.File(ctx, hash)
	if err == nil {
		r.readFileHash, r.readFileContent = hash, content
	}
	return content, err
}

// asFailure makes an error a Failure that carries its kind to Python.
func asFailure(err error) error {
	return &worker.Failure{Kind: string(fault.KindOf(err)), Message: err.Error()}
}
