package api

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// Arguments say what a call works on by what they embed: inEnvironment (the header names the environment),
// oneEnvironment and oneProject (the path does), or intoProject (an argument does). Other calls work on the server.
type (
	onEnvironment interface{ environmentID() uuid.UUID }
	onProject     interface{ projectID() uuid.UUID }
)

func (e inEnvironment) environmentID() uuid.UUID  { return e.Env }
func (e oneEnvironment) environmentID() uuid.UUID { return e.ID }
func (p oneProject) projectID() uuid.UUID         { return p.ID }
func (n newEnvironmentV1) projectID() uuid.UUID   { return n.ProjectID }

func noEnvironment() error {
	return fault.New("api", fault.NotFound, "The given environment id does not exist!")
}

func noProject() error {
	return fault.New("api", fault.NotFound, "The project id provided does not exist.")
}

// greet turns strangers away before their arguments are read.
func (s *server) greet(ctx context.Context, v access.Verb) error {
	d, _ := v.Define()
	if d.Label == access.Public || access.Of(ctx).Known() {
		return nil
	}
	return access.Check(ctx, v, access.Target{}, nil)
}

// allow checks that the sender may do what the call does, and that the environment it works in exists. Who may see
// nothing of a project or an environment gets the answer of an unknown id.
func (s *server) allow(ctx context.Context, v access.Verb, args any) error {
	switch a := args.(type) {
	case onEnvironment:
		target, err := s.environmentTarget(ctx, a.environmentID())
		if fault.Is(err, fault.NotFound) {
			return noEnvironment()
		}
		if err != nil {
			return err
		}
		return access.Check(ctx, v, target, noEnvironment())
	case onProject:
		_, err := s.store.Project(ctx, a.projectID())
		if fault.Is(err, fault.NotFound) {
			return noProject()
		}
		if err != nil {
			return err
		}
		return access.Check(ctx, v, access.Target{Project: a.projectID()}, noProject())
	}
	return access.Check(ctx, v, access.Target{}, nil)
}

// environmentTarget returns an environment as the target of a verb; NotFound for an unknown one.
func (s *server) environmentTarget(ctx context.Context, id uuid.UUID) (access.Target, error) {
	e, err := s.store.Environment(ctx, id)
	if err != nil {
		return access.Target{}, err
	}
	return access.Target{Project: e.ProjectID, Environment: e.ID}, nil
}
