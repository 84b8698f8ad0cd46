package access

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
)

// Authenticator proves who sends a request. It returns the zero Principal for a request without credentials, and an
// Unauthorized fault for one whose credentials are wrong, expired or revoked. It is safe for concurrent use.
type Authenticator interface {
	Authenticate(*http.Request) (Principal, error)
}

// Off is the Authenticator of a server without authentication: everybody who reaches it may do everything.
type Off struct{}

// Authenticate returns the local administrator.
func (Off) Authenticate(*http.Request) (Principal, error) { return localAdministrator, nil }

var localAdministrator = Principal{
	Kind: Local, Name: "somebody", Bindings: []Binding{{Role: Administrator, Through: "authentication is off"}},
}

// OfHandlers is the principal of the handlers of an environment.
func OfHandlers(environment uuid.UUID) Principal {
	return Principal{
		Kind: Handler, Name: "a handler",
		Bindings: []Binding{{Role: Maintainer, Scope: Scope{Environment: environment}}},
	}
}

type principalKey struct{}

// With returns a context that carries who sends a request.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Of returns who sends a request; a stranger when the context carries nobody.
func Of(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// Enter returns a request whose context carries its sender. It asks nobody if the context carries one already: a
// request from within this process.
func Enter(a Authenticator, r *http.Request) (*http.Request, error) {
	if Of(r.Context()).Known() {
		return r, nil
	}
	p, err := a.Authenticate(r)
	if err != nil {
		return r, err
	}
	return r.WithContext(With(r.Context(), p)), nil
}

// Check returns nil if the sender of a request may do a verb to a target. Otherwise it returns an Unauthorized fault
// for a stranger, unseen for a target that the sender may not know of, and a Forbidden fault that says why else.
func Check(ctx context.Context, v Verb, t Target, unseen error) error {
	p := Of(ctx)
	decision := p.Decide(v, t)
	switch {
	case decision.Allowed:
		return nil
	case !p.Known():
		return fault.New("access.Check", fault.Unauthorized, "this needs somebody who is logged in").
			Hint("log in, or send a token")
	case !decision.Visible:
		return unseen
	}
	return fault.New("access.Check", fault.Forbidden, decision.Reason).
		Hint("ask an administrator of the project for a role that allows it")
}

// Confine returns a Forbidden fault if the sender of a request may only work with another environment. It is asked
// before anybody looks whether the environment exists. uuid.Nil stands for a project.
func Confine(ctx context.Context, environment uuid.UUID) error {
	if only := Of(ctx).Only; only != uuid.Nil && only != environment {
		return fault.New("access.Confine", fault.Forbidden,
			"The authorization token is not valid for the requested environment.")
	}
	return nil
}
