package store_test

import (
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// A compile that was cancelled for a newer commit names that one, and so do the requests that it answered; it made no
// version, and is not what the environment compiled last.
func TestACancelledCompile(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ctx, env := t.Context(), newEnvironment(t, s)
	first := enqueue(t, s, env, 1, nil)
	get(s.StartCompile(ctx, env, after(2)))(t)
	must(t, s.SetCompileRevision(ctx, first, intent.Revision{Commit: "c1"}))
	must(t, s.FinishCompile(ctx, first, intent.CompileEnd{Success: true, At: after(3)}))
	run, answered := enqueue(t, s, env, 4, nil), enqueue(t, s, env, 5, nil)
	get(s.StartCompile(ctx, env, after(6)))(t)
	must(t, s.SetCompileRevision(ctx, run, intent.Revision{Commit: "c2"}))
	newer := enqueue(t, s, env, 7, nil)
	one := 1
	want(t, s.FinishCompile(ctx, run, intent.CompileEnd{SupersededBy: &newer, Version: &one, At: after(8)}),
		fault.Conflict)
	must(t, s.FinishCompile(ctx, run, intent.CompileEnd{SupersededBy: &newer, At: after(8)}))
	for _, id := range []intent.CompileID{run, answered} {
		c, _, err := s.Compile(ctx, id)
		if err != nil || c.SupersededBy == nil || *c.SupersededBy != newer || *c.Success {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if last := get(s.LastCompile(ctx, env))(t); last == nil || last.Revision.Commit != "c1" {
		t.Errorf("compiled last was %+v", last)
	}
}
