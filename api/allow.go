package api

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// Arguments say what a call works on by what they embed: inEnvironment (the header names the environment),
// oneEnvironment and oneProject (the path does), or newEnvironmentV1 (an argument does). Other calls work on the
// server.
type (
	onEnvironment interface{ environmentID() uuid.UUID }
	onProject     interface{ projectID() uuid.UUID }
	// laterChecked arguments name something whose environment the call has to look up: it checks the sender itself.
	laterChecked interface{ checkedByCall() }
)

func (e inEnvironment) environmentID() uuid.UUID  { return e.Env }
func (e oneEnvironment) environmentID() uuid.UUID { return e.ID }
func (p oneProject) projectID() uuid.UUID         { return p.ID }
func (n newEnvironmentV1) projectID() uuid.UUID   { return n.ProjectID }

func (compileOfAny) checkedByCall() {}
func (oneFile) checkedByCall()      {}
func (fileIDs) checkedByCall()      {}
func (twoFiles) checkedByCall()     {}

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
		if err := access.Confine(ctx, a.environmentID()); err != nil {
			return err
		}
		e, err := s.store.Environment(ctx, a.environmentID())
		if fault.Is(err, fault.NotFound) {
			return noEnvironment()
		}
		if err != nil {
			return err
		}
		audit.On(ctx, e)
		return access.Check(ctx, v, access.TargetOf(e), noEnvironment())
	case onProject:
		if err := access.Confine(ctx, uuid.Nil); err != nil {
			return err
		}
		return s.allowInProject(ctx, v, a.projectID())
	case laterChecked:
		return nil
	}
	return access.Check(ctx, v, access.Target{}, nil)
}

// guarded lets only those through who may do a verb to the server, for what is no call.
func (s *server) guarded(v access.Verb, next gin.HandlerFunc) gin.HandlerFunc {
	return func(g *gin.Context) {
		r, err := access.Enter(s.auth, g.Request)
		if err == nil {
			err = access.Check(r.Context(), v, access.Target{}, nil)
		}
		if err != nil {
			s.fail(g, err)
			return
		}
		next(g)
	}
}

// namesTarget reports whether arguments that could not be read as a whole do say what the call works on.
func namesTarget(args any) bool {
	switch a := args.(type) {
	case onEnvironment:
		return a.environmentID() != uuid.Nil
	case onProject:
		return a.projectID() != uuid.Nil
	}
	return true
}

// allowInProject checks a verb on a project. Who only has a role in one of its environments may see the project, too.
// For a sender who may not know of the project, as much is read as for an id that does not exist, so that the time of
// the answer says nothing either.
func (s *server) allowInProject(ctx context.Context, v access.Verb, id uuid.UUID) error {
	p, err := s.store.Project(ctx, id)
	missing := fault.Is(err, fault.NotFound)
	switch {
	case missing:
		err = noProject()
	case err != nil:
		return err
	default:
		audit.OnProject(ctx, p)
		err = access.Check(ctx, v, access.Target{Project: id}, noProject())
	}
	if err == nil || !fault.Is(err, fault.NotFound) {
		return err
	}
	environments, readErr := s.store.Environments(ctx)
	if readErr != nil {
		return readErr
	}
	switch visible := access.VisibleProjects(ctx, []intent.Project{p}, environments); {
	case missing || len(visible) == 0:
		return err
	case v == access.SeeProject:
		return nil
	}
	return fault.New("api", fault.Forbidden, "your roles are in environments of this project, not in it itself").
		Hint("ask an administrator of the project for a role in it")
}
