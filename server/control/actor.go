package control

import (
	"context"
	"fmt"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

type actorKey struct{}

// As returns a context that names the person who acts, and their reason; both may be empty. The name only counts while
// authentication is off; otherwise the person is the one who is logged in.
func As(ctx context.Context, by, reason string) context.Context {
	audit.Because(ctx, by, reason)
	return context.WithValue(ctx, actorKey{}, intent.Actor{By: by, Reason: reason})
}

// actor returns the person that a context names, as the record keeps it. When somebody is
// logged in it is always they, whatever a request says.
func (c *Control) actor(ctx context.Context) intent.Actor {
	a, _ := ctx.Value(actorKey{}).(intent.Actor)
	a.By = who(ctx, a.By)
	if a.By == "" {
		a.By = "somebody"
	}
	a.At = c.now()
	return a
}

// who returns the name of the person who acts: the one who is logged in, else the given one.
func who(ctx context.Context, given string) string {
	if p := access.Of(ctx); p.Known() && p.Kind != access.Local {
		return p.Name
	}
	return given
}

// maxWords is the longest name or reason in bytes.
const maxWords = 1000

// reasoned returns the actor of a verb that needs a reason, and checks the length of the reason.
func (c *Control) reasoned(ctx context.Context, op string) (intent.Actor, error) {
	by := c.actor(ctx)
	if by.Reason == "" || len(by.Reason) > maxWords || len(by.By) > maxWords {
		return by, fault.New(op, fault.Invalid, fmt.Sprintf("give a reason of at most %d bytes; it is kept", maxWords))
	}
	return by, nil
}

// abbreviates reports whether a text is a commit hash or at least its first seven characters.
func abbreviates(text, commit string) bool {
	return len(text) >= 7 && len(text) <= len(commit) && commit[:len(text)] == text
}

func short(commit string) string { return commit[:min(7, len(commit))] }
