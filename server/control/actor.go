package control

import (
	"context"
	"fmt"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

type actorKey struct{}

// As returns a context that names the person who acts, and their reason; both may be empty. The name only counts while
// authentication is off; otherwise the person is the one who is logged in.
func As(ctx context.Context, by, reason string) context.Context {
	return context.WithValue(ctx, actorKey{}, intent.Actor{By: by, Reason: reason})
}

// actor returns the person who acts, for the record.
func (c *Control) actor(ctx context.Context) intent.Actor {
	a, _ := ctx.Value(actorKey{}).(intent.Actor)
	if p := access.Of(ctx); p.Known() && p.Kind != access.Local {
		a.By = p.Name
	}
	if a.By == "" {
		a.By = "somebody"
	}
	a.At = c.now()
	return a
}

// maxWords is how long a name or a reason may be.
const maxWords = 1000

// reasoned is the actor of a verb that needs a reason, of a reasonable length.
func (c *Control) reasoned(ctx context.Context, op string) (intent.Actor, error) {
	by := c.actor(ctx)
	if by.Reason == "" || len(by.Reason) > maxWords || len(by.By) > maxWords {
		return by, fault.New(op, fault.Invalid, fmt.Sprintf("say why, in at most %d bytes; it is kept", maxWords))
	}
	return by, nil
}

// abbreviates reports whether a text is a commit, or its first seven characters or more.
func abbreviates(text, commit string) bool {
	return len(text) >= 7 && len(text) <= len(commit) && commit[:len(text)] == text
}

func short(commit string) string { return commit[:min(7, len(commit))] }
