package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/intent"
)

// A generated history drives a scheduler while an observer, which knows
// nothing of queues and searches only in the plainest way, watches every
// command. The same history is then played to a second scheduler.

// step is one event of a history, with choices that are made when it is played.
type step struct {
	kind   int
	pick   int
	status int
	change bool
	model  []intent.Resource
	later  time.Duration
}

func stepGen(agents, size int) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		s := step{
			kind: rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11, 11, 12,
				13, 13, 14, 14, 14, 15, 16, 17, 18}).
				Draw(t, "kind"),
			pick:   rapid.IntRange(0, 1000).Draw(t, "pick"),
			status: rapid.IntRange(0, 9).Draw(t, "status"),
			change: rapid.Bool().Draw(t, "change"),
			later:  time.Duration(rapid.IntRange(1, 100).Draw(t, "later")) * time.Second,
		}
		if s.kind == 1 {
			s.model = modelGen(agents, size).Draw(t, "model")
		}
		return s
	})
}

// modelGen generates resources that only require ones with a smaller number, so that there is no circle; the numbers
// are mixed over agents.
func modelGen(agents, size int) *rapid.Generator[[]intent.Resource] {
	return sparseGen(agents, size, 3)
}

// sparseGen is modelGen with few edges.
func sparseGen(agents, size, edges int) *rapid.Generator[[]intent.Resource] {
	return rapid.Custom(func(t *rapid.T) []intent.Resource {
		var out []intent.Resource
		for i := range size {
			if rapid.IntRange(0, 4).Draw(t, "there") == 0 {
				continue
			}
			r := intent.Resource{
				ID:            rid(fmt.Sprintf("%c/%02d", 'a'+i%agents, (i*7)%size)),
				AttributeHash: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "hash")),
				Purged:        rapid.IntRange(0, 5).Draw(t, "purged") == 0,
				SendEvent:     rapid.Bool().Draw(t, "send"),
				ReceiveEvents: rapid.Bool().Draw(t, "receive"),
			}
			if rapid.IntRange(0, 14).Draw(t, "undefined") == 0 {
				r.Undefined = []string{"x"}
				r.AttributeHash += "?"
			}
			for _, earlier := range out {
				if rapid.IntRange(0, edges).Draw(t, "edge") == 0 {
					r.Requires = append(r.Requires, earlier.ID)
					r.AttributeHash += "+" + short(earlier.ID)
				}
			}
			for _, need := range r.Requires {
				if r.Purged && rapid.IntRange(0, 3).Draw(t, "kept") > 0 {
					r.KeptRequires = append(r.KeptRequires, need)
				}
			}
			out = append(out, r)
		}
		return out
	})
}

func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			Concurrency: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "limit"),
			Seed:        1,
			DryRuns:     2,
			Facts:       2,
		}
		policy := Policy{
			MaxAttempts: rapid.SampledFrom([]int{0, 2, 4}).
				Draw(t, "attempts"),
			HealLimit: rapid.SampledFrom([]int{0, 2}).Draw(t, "heals"),
			BreakerFailures: rapid.SampledFrom([]int{0, 2}).
				Draw(t, "failures"),
			ReportDrift: rapid.Bool().Draw(t, "report"),
		}
		timers := rapid.SampledFrom([]Timers{{}, {Deploy: cron.Every(time.Minute), Repair: cron.Every(time.Hour)}}).
			Draw(t, "timers")
		rules := rulesGen().Draw(t, "rules")
		first := modelGen(4, 12).Draw(t, "first")
		steps := rapid.SliceOfN(stepGen(4, 12), 0, 80).Draw(t, "steps")
		var logs [2][]string
		for i := range logs {
			s, err := New(Snapshot{Now: t0}, limits)
			if err != nil {
				t.Fatal(err)
			}
			o := newObserver(t, s, limits)
			o.policy, o.turned = policy, i == 1
			s.SetTimers(timers, o.now)
			o.take(s.SetPolicy(policy, o.now))
			o.rules = rules
			o.take(s.SetRules(rules, o.now))
			o.release(first)
			for _, step := range steps {
				o.play(step)
			}
			o.settle()
			logs[i] = o.log
		}
		if !slices.Equal(logs[0], logs[1]) {
			t.Fatal("the same history gave other commands")
		}
	})
}

// A resource that always fails prevents nothing that does not need it.
func TestFailingPreventsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := modelGen(4, 12).Draw(t, "model")
		if len(model) == 0 {
			return
		}
		culprit := model[rapid.IntRange(0, len(model)-1).Draw(t, "culprit")].ID
		s, _ := New(Snapshot{Now: t0}, Limits{})
		o := newObserver(t, s, Limits{})
		o.release(model)
		for len(o.running) > 0 {
			status := intent.StatusDeployed
			if o.running[0].Resource.ID == culprit {
				status = intent.StatusFailed
			}
			o.end(0, status, intent.NoChange)
		}
		for _, r := range o.model {
			st, _ := s.State(r.ID)
			if st.Blocked == intent.IsBlocked || r.ID == culprit || slices.Contains(o.needs(r.ID), culprit) {
				continue
			}
			if st.Compliance != intent.Compliant {
				t.Fatalf("%s does not need %s and is %+v", r.ID, culprit, st)
			}
		}
	})
}
