package server

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// learnHostKey stores the key of an SSH server for a project.
func (s *Server) learnHostKey(scope, line string) error {
	project, err := uuid.Parse(scope)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.control.LearnHostKey(ctx, project, line)
}
