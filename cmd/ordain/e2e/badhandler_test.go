package e2e

import (
	"testing"

	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/config"
)

// Handlers misbehave in every way we know, each beside a calm note of the same
// agent. The bad note ends in the right state, and its log says what happened. The
// calm one is deployed all the same, by a new worker if the old one died. When the
// bad note calms down, it is deployed too.
func TestHandlersThatMisbehave(t *testing.T) {
	t.Parallel()
	p := newDeployedPlace(t, sharedWorld(t))
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
			p.t = t
			calm := [3]string{"good", "beside " + c.mood, "calm"}
			p.push("one bad note", p.model([3]string{"bad", c.mood, c.mood}, calm))
			p.compiledWell()
			rows := p.settled()
			if got := rows["bad"].State.Status(); got != c.status {
				t.Errorf("the bad note is %s, want %s\n%s", got, c.status, p.logOf("bad"))
			}
			mentions(t, p.logOf("bad"), c.words...)
			if size := len(p.logOf("bad")); size > 512<<10 {
				t.Errorf("the log of the bad note has %d bytes", size)
			}
			if got := rows["good"].State.Status(); got != intent.StatusDeployed || p.note("good") != calm[1] {
				t.Errorf("the calm note is %s and says %q\n%s", got, p.note("good"), p.logOf("good"))
			}
			better := "better than " + c.mood
			p.push("it calms down", p.model([3]string{"bad", better, "calm"}, calm))
			p.compiledWell()
			if got := p.settled()["bad"].State.Status(); got != intent.StatusDeployed || p.note("bad") != better {
				t.Errorf("calm again, it is %s and says %q\n%s", got, p.note("bad"), p.logOf("bad"))
			}
		})
		p.t = t
	}
}

// A handler hangs. It is stopped after the timeout, its note fails and says so, and
// the next note of the agent is deployed.
func TestHandlerThatHangs(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, func(c *config.Config) { c.HandlerTimeout = 2 * time.Second })
	p := w.newPlace(t)
	p.push("one note hangs",
		mergeFiles(labModule, p.model([3]string{"bad", "one", "hang"}, [3]string{"good", "two", "calm"})))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	rows := p.settled()
	if rows["bad"].State.Status() != intent.StatusFailed {
		t.Errorf("the hanging note is %s", rows["bad"].State.Status())
	}
	mentions(t, p.logOf("bad"), "2s")
	if rows["good"].State.Status() != intent.StatusDeployed || p.note("good") != "two" {
		t.Errorf("the calm note is %s and says %q", rows["good"].State.Status(), p.note("good"))
	}
}
