package console

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

type environmentKey struct{}

// guarded lets only those through who may do a verb: to the environment that the path names, or to the server.
func (c *console) guarded(v access.Verb, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r, err := c.admit(r, v)
		ctx, trail := c.audit.Begin(r, "console", v)
		if e, err := c.environment(r); err == nil {
			audit.On(ctx, e)
		}
		if p, err := c.projectOf(r); err == nil {
			audit.OnProject(ctx, p)
		}
		defer func() { c.audit.End(ctx, trail, err) }()
		if err != nil {
			c.fail(w, r, err)
			return
		}
		next(w, r.WithContext(ctx))
	}
}

// guardedLoad admits the sender each time a page is loaded, so that a live page ends when a session or a role does.
func (c *console) guardedLoad(v access.Verb, load loader) loader {
	return func(r *http.Request) (view, error) {
		r, err := c.admit(r, v)
		if err != nil {
			return view{}, err
		}
		return load(r)
	}
}

// admit checks who sends a request, and that they may do a verb. The request that it returns carries the sender and
// the environment that its path names.
func (c *console) admit(r *http.Request, v access.Verb) (*http.Request, error) {
	r, err := access.Enter(c.auth, r)
	if err != nil {
		return r, err
	}
	if name := r.PathValue("project"); name != "" {
		return c.admitProject(r, v, name)
	}
	name := r.PathValue("env")
	if name == "" {
		return r, access.Check(r.Context(), v, access.Target{}, nil)
	}
	if !access.Of(r.Context()).Known() { // a stranger is told to log in, whatever exists
		return r, access.Check(r.Context(), v, access.Target{}, nil)
	}
	id, err := uuid.Parse(name)
	if err != nil {
		return r, noEnvironment(name)
	}
	e, err := c.store.Environment(r.Context(), id)
	if fault.Is(err, fault.NotFound) {
		return r, noEnvironment(name)
	}
	if err != nil {
		return r, err
	}
	err = access.Check(r.Context(), v, access.TargetOf(e), noEnvironment(name))
	return r.WithContext(context.WithValue(r.Context(), environmentKey{}, e)), err
}

func noEnvironment(name string) error {
	return fault.New("console", fault.NotFound, "there is no environment "+name)
}

// environment returns the environment in the path of a request, as it was when the request was admitted.
func (c *console) environment(r *http.Request) (intent.Environment, error) {
	e, ok := r.Context().Value(environmentKey{}).(intent.Environment)
	if !ok {
		return e, noEnvironment(r.PathValue("env"))
	}
	return e, nil
}
