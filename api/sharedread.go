package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/server/edge"
)

// Many programs ask for the same lists again and again, and some of them at the same time. Equal reads that wait share
// one load, and the bytes that it is answered with:
//
//	request ─▶ who sends it, arguments, may they ─┐                  ┌─▶ ETag, compression ─▶ answer
//	request ─▶ who sends it, arguments, may they ─┴─▶ load, encode ──┴─▶ ETag, compression ─▶ answer
//
// A load begins after all of its requests came (see package shared), so each sees what its sender did before.

// sharedLoads is how many different reads are loaded at once. More of them only wait for each other in the database.
const sharedLoads = 4

// sharedKey is the call and its arguments. Requests with the same key get the same answer, no matter who sends them.
type sharedKey struct{ path, arguments string }

// readyAnswer is an answer in bytes.
type readyAnswer struct {
	etag string
	body *edge.Body
}

// sharing is what the arguments of a call have whose reads are shared.
type sharing interface {
	// sharedArguments returns a text that is equal for equal arguments only.
	sharedArguments() string
}

// shares says that equal reads of a call are shared. What it answers must depend on its arguments alone.
func shares(d *declaration) { d.shares = true }

// share answers a call with what it loads, or what another request has loaded since this one came.
func share[A any](
	ctx context.Context, s *server, d *declaration, a A, handle func(context.Context, A) (any, error),
) (any, error) {
	key := sharedKey{d.path, any(a).(sharing).sharedArguments()}
	ready, err := s.reads.Get(ctx, key, func(ctx context.Context, _ sharedKey) (*readyAnswer, error) {
		answer, err := handle(ctx, a)
		if err != nil {
			return nil, err
		}
		return readyOf(answer), nil
	})
	if err != nil {
		return nil, err
	}
	return ready, nil
}

func readyOf(answer any) *readyAnswer {
	text := encode(answer)
	return &readyAnswer{etagOf(text), edge.NewBody(text)}
}

func (a *readyAnswer) serve(g *gin.Context) { a.body.Serve(g.Writer, g.Request) }
