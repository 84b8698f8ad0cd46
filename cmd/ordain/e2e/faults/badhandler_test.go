package faults

import (
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/testing/tool"

	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/config"
)

// Handlers misbehave in every way we know, each beside a calm note of the same
// agent. The bad note ends in the right state, and its log says what happened. The
// calm one is deployed all the same, by a new worker if the old one died. When the
// bad note calms down, it is deployed too.
func TestHandlersThatMisbehave(t *testing.T) {
	tool.Long(t, "a deployment for each kind of misbehaviour")
	t.Parallel()
	p := lab.NewDeployedPlace(t, lab.SharedWorld(t))
	for _, c := range []struct {
		mood   string
		status intent.Status
		words  []string
	}{
		{"raise", intent.StatusFailed, []string{"the pencil broke"}},
		{"die", intent.StatusFailed, []string{"goodbye, cruel world"}},
		{"crash", intent.StatusFailed, []string{"segmentation"}},
		{"skip", intent.StatusSkipped, []string{"not today"}},
		{"babble", intent.StatusDeployed, []string{"xxxxxxxx"}},
	} {
		t.Run(c.mood, func(t *testing.T) {
			p.T = t
			calm := [3]string{"good", "beside " + c.mood, "calm"}
			p.Push("one bad note", p.Model([3]string{"bad", c.mood, c.mood}, calm))
			p.CompiledWell()
			rows := p.Settled()
			if got := rows["bad"].State.Status(); got != c.status {
				t.Errorf("the bad note is %s, want %s\n%s", got, c.status, p.LogOf("bad"))
			}
			lab.Mentions(t, p.LogOf("bad"), c.words...)
			if size := len(p.LogOf("bad")); size > 512<<10 {
				t.Errorf("the log of the bad note has %d bytes", size)
			}
			if got := rows["good"].State.Status(); got != intent.StatusDeployed || p.Note("good") != calm[1] {
				t.Errorf("the calm note is %s and says %q\n%s", got, p.Note("good"), p.LogOf("good"))
			}
			better := "better than " + c.mood
			p.Push("it calms down", p.Model([3]string{"bad", better, "calm"}, calm))
			p.CompiledWell()
			if got := p.Settled()["bad"].State.Status(); got != intent.StatusDeployed || p.Note("bad") != better {
				t.Errorf("calm again, it is %s and says %q\n%s", got, p.Note("bad"), p.LogOf("bad"))
			}
		})
		p.T = t
	}
}

// A handler hangs. It is stopped after the timeout, its note fails and says so, and
// the next note of the agent is deployed.
func TestHandlerThatHangs(t *testing.T) {
	t.Parallel()
	w := lab.OwnWorld(t, func(c *config.Config) { c.HandlerTimeout = 2 * time.Second })
	p := w.NewPlace(t)
	p.Push("one note hangs",
		lab.MergeFiles(lab.Module, p.Model([3]string{"bad", "one", "hang"}, [3]string{"good", "two", "calm"})))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	rows := p.Settled()
	if rows["bad"].State.Status() != intent.StatusFailed {
		t.Errorf("the hanging note is %s", rows["bad"].State.Status())
	}
	lab.Mentions(t, p.LogOf("bad"), "2s")
	if rows["good"].State.Status() != intent.StatusDeployed || p.Note("good") != "two" {
		t.Errorf("the calm note is %s and says %q", rows["good"].State.Status(), p.Note("good"))
	}
}
