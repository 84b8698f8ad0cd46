package lab

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/promote"
)

// Until waits until done reports true. It asks whenever the server publishes an
// event of the environment, and now and then.
func (p *Place) Until(what string, done func() bool) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.T.Context(), Patience)
	defer cancel()
	moves := p.Server.Bus().Subscribe(func(e bus.Event) bool { return e.Environment == p.Env })
	defer moves.Close()
	ticker := time.NewTicker(200 * time.Millisecond) // events may be lost, and files change without one
	defer ticker.Stop()
	for !done() {
		select {
		case <-moves.Events():
		case <-ticker.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				p.T.Fatalf("waited in vain for %s\n%s", what, p.Story())
			}
			p.T.Fatal(ctx.Err())
		}
	}
}

// Compiled waits until the environment's next compile has ended, and returns its
// report. Compiles of previews and dry runs do not count.
func (p *Place) Compiled() (intent.Compile, []intent.Stage) {
	p.T.Helper()
	var c intent.Compile
	var stages []intent.Stage
	p.Until("the next compile", func() bool {
		page, err := p.Store.Compiles(p.T.Context(), p.Env, intent.ListQuery{Sort: "requested"})
		if err != nil {
			p.T.Fatal(err)
		}
		own := slices.DeleteFunc(page.Items, func(c intent.Compile) bool { return c.Trigger.Type == "dryrun" })
		next := 1 + slices.IndexFunc(own, func(c intent.Compile) bool { return c.ID == p.last })
		if next >= len(own) || own[next].Completed == nil {
			return false
		}
		c, stages, err = p.Store.Compile(p.T.Context(), own[next].ID)
		if err != nil {
			p.T.Fatal(err)
		}
		return true
	})
	p.last = c.ID
	return c, stages
}

// CompiledWell waits like compiled, and fails the test if the compile failed.
func (p *Place) CompiledWell() intent.Compile {
	p.T.Helper()
	c, stages := p.Compiled()
	if c.Success == nil || !*c.Success {
		p.T.Fatalf("the compile failed:\n%s", Report(stages))
	}
	return c
}

// FailsIn waits for a compile that has to fail in this stage, and returns the
// stage's error output. The failure must not change what is deployed.
func (p *Place) FailsIn(stage string) string {
	p.T.Helper()
	before := p.DeployedState()
	c, stages := p.Compiled()
	if c.Success == nil || *c.Success {
		p.T.Fatalf("the compile succeeded:\n%s", Report(stages))
	}
	if c.Version != nil {
		p.T.Errorf("the failed compile left version %d", *c.Version)
	}
	last := stages[len(stages)-1]
	if last.Name != stage || last.ReturnCode == nil || *last.ReturnCode == 0 {
		p.T.Fatalf("the compile failed in %q, want %q:\n%s", last.Name, stage, Report(stages))
	}
	if after := p.DeployedState(); after != before {
		p.T.Errorf("a failed compile changed what is deployed:\n%s\nbecame\n%s", before, after)
	}
	return last.ErrOutput
}

// Settled waits until no resource is being deployed or waits for that, and
// returns the resources by the name of their note.
func (p *Place) Settled() map[string]intent.ResourceRow {
	p.T.Helper()
	rows := map[string]intent.ResourceRow{}
	p.Until("the deployment", func() bool {
		page, err := p.Store.Resources(p.T.Context(), p.Env, intent.ListQuery{})
		if err != nil {
			p.T.Fatal(err)
		}
		clear(rows)
		for _, r := range page.Items {
			s := r.State.Status()
			if s == intent.StatusDeploying || s == intent.StatusAvailable {
				return false
			}
			rows[filepath.Base(r.State.ID.Value)] = r
		}
		return true
	})
	return rows
}

// WaitPromotion waits until is reports true for the state of promotions.
func (p *Place) WaitPromotion(what string, is func(control.Following) bool) control.Following {
	p.T.Helper()
	var f control.Following
	p.Until(what, func() bool {
		var err error
		if f, err = p.Control.Following(p.T.Context(), p.Env); err != nil {
			p.T.Fatal(err)
		}
		return is(f)
	})
	return f
}

// WaitHeld waits until a commit is waiting, for a reason that contains why.
func (p *Place) WaitHeld(commit, why string) {
	p.T.Helper()
	p.WaitPromotion(commit[:7]+" to wait for "+why, func(f control.Following) bool {
		w := f.Waiting()
		return w != nil && w.Commit == commit && strings.Contains(promote.Waits(*w), why)
	})
}
