package e2e

import (
	"testing"

	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/config"
)

// Handlers misbehave in every way we know, each beside a calm note of the same
// agent: the bad one is marked with what happened, in its own log; the calm one
// is deployed all the same, by a worker that was started again where the old
// one died; and when the note calms down, it is deployed.
func TestHandlersThatMisbehave(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
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
			t.Parallel()
			p := w.unbound(t)
			p.push("one bad note",
				merge(labModule, p.model([3]string{"bad", "one", c.mood}, [3]string{"good", "two", "calm"})))
			p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
			p.compiledWell()
			rows := p.settled()
			if got := rows["bad"].State.Status(); got != c.status {
				t.Errorf("the bad note is %s, want %s\n%s", got, c.status, p.logOf("bad"))
			}
			mentions(t, p.logOf("bad"), c.words...)
			if size := len(p.logOf("bad")); size > 512<<10 {
				t.Errorf("the log of the bad note has %d bytes", size)
			}
			if rows["good"].State.Status() != intent.StatusDeployed || p.note("good") != "two" {
				t.Errorf("the calm note is %s and says %q\n%s", rows["good"].State.Status(), p.note("good"),
					p.logOf("good"))
			}
			p.push("it calms down", p.model([3]string{"bad", "three", "calm"}, [3]string{"good", "two", "calm"}))
			p.compiledWell()
			if rows := p.settled(); rows["bad"].State.Status() != intent.StatusDeployed || p.note("bad") != "three" {
				t.Errorf("calm again it is %s and says %q\n%s", rows["bad"].State.Status(), p.note("bad"),
					p.logOf("bad"))
			}
		})
	}
}

// A handler that hangs is given up after its time: the note fails and says so,
// the next note of the agent is deployed.
func TestHandlerThatHangs(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, func(c *config.Config) { c.HandlerTimeout = 2 * time.Second })
	p := w.unbound(t)
	p.push("one note hangs",
		merge(labModule, p.model([3]string{"bad", "one", "hang"}, [3]string{"good", "two", "calm"})))
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
