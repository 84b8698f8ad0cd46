package server

import (
	"context"
	"io"
	"net/url"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// maskedLog is a log file in which the server's own secrets are masked: its key, and the
// password of the database.
type maskedLog struct {
	server *Server
	to     io.Writer
}

// Write writes whole lines.
func (l maskedLog) Write(p []byte) (int, error) {
	if _, err := l.to.Write([]byte(l.server.known.Load().Text(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// passwordOf returns the password in a connection string, if there is one.
func passwordOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if password, ok := u.User.Password(); ok {
		return password
	}
	return u.Query().Get("password")
}

// masker returns a function that masks the server's secrets, and those of the environment
// that owns a virtual environment, in what an installer printed.
func (s *Server) masker(records *store.Store, sources *source.Opener) func(owner, text string) string {
	return func(owner, text string) string {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if id, err := uuid.Parse(owner); err == nil {
			if e, err := records.Environment(ctx, id); err == nil {
				return sources.Redactor(ctx, e).Text(text)
			}
		}
		return s.known.Load().Text(text)
	}
}
