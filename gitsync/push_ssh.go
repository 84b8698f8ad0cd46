package gitsync

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"ordain.dev/ordain/internal/fault"
)

// sshPush returns a session in which git-receive-pack runs. It does not connect yet.
func (s *Syncer) sshPush(p place) (pushSession, error) {
	session, err := s.sshSession(p)
	if err != nil {
		return nil, err
	}
	session.program = "git-receive-pack"
	return session, nil
}

// send implements pushSession.
func (s *sshSession) send(ctx context.Context, request *bytes.Buffer) (io.ReadCloser, error) {
	stop := context.AfterFunc(ctx, func() { s.client.Close() })
	_, err := request.WriteTo(s.in)
	if err == nil {
		err = s.in.Close()
	}
	if err != nil {
		stop()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, s.explain(ctx, err)
	}
	return closing{s.out, func() { stop() }}, nil
}

// explainPush turns what git-receive-pack wrote before it exited into an error. The repository could be read just
// before: if it cannot be found now, we may not write to it.
func (s *sshSession) explainPush(err error, said string) error {
	var known *fault.Error
	switch {
	case errors.Is(err, transport.ErrRepositoryNotFound), errors.Is(err, transport.ErrAuthorizationFailed),
		errors.As(err, &known) && mentions(said, append([]string{"not authorized"}, readOnlyWords...)):
		return s.place.readOnlyFault((&refusedError{said: said, status: "git-receive-pack"}).Error())
	}
	return err
}
