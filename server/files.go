package server

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// files are the files that the handlers of an environment may read and store: those of its project.
type files struct {
	store *store.Store
	env   intent.EnvironmentID
}

// File returns the content of a file; NotFound, too, for one that only other projects may read.
func (f files) File(ctx context.Context, sha1 string) ([]byte, error) {
	e, err := f.store.Environment(ctx, f.env)
	if err != nil {
		return nil, err
	}
	readable, err := f.store.ReadableFiles(ctx, []string{sha1}, []intent.ProjectID{e.ProjectID})
	if err != nil {
		return nil, err
	}
	if len(readable) == 0 {
		return nil, fault.New("server.File", fault.NotFound, "there is no such file")
	}
	return f.store.File(ctx, sha1)
}

// PutFile stores a file for the project.
func (f files) PutFile(ctx context.Context, content []byte) (string, error) {
	e, err := f.store.Environment(ctx, f.env)
	if err != nil {
		return "", err
	}
	return f.store.PutFile(ctx, content, e.ProjectID)
}
