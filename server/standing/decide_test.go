package standing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// Every way in which what is deployed and the tip of the branch can differ has its own word, and the sentence names
// the commit, the person or the run behind it.
func TestStandings(t *testing.T) {
	const aa, bb, cc = "aaaaaaa1111", "bbbbbbb2222", "ccccccc3333"
	at := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	run := func(commit string, ok bool) *intent.LastRun {
		return &intent.LastRun{ID: uuid.New(), Revision: intent.Revision{Commit: commit}, Success: ok, Trigger: "poll"}
	}
	version := func(number int, commit string) *intent.Version {
		return &intent.Version{Number: number, Released: &at, Provenance: intent.Provenance{Commit: commit}}
	}
	deployed := func(commit string) intent.StandingFacts {
		return intent.StandingFacts{
			Active: version(4, commit), Tip: run(commit, true), Last: run(commit, true), Seen: at,
		}
	}
	pushed := func(commit string) intent.StandingFacts {
		f := deployed(aa)
		f.Tip, f.Last = run(commit, true), run(commit, true)
		return f
	}
	ada := intent.Actor{By: "Ada", Reason: "cakes are wrong", At: at}
	back := func(f intent.StandingFacts) intent.StandingFacts {
		f.Active.Provenance.RolledBack = &intent.RollBack{
			From: 3, To: 2, Blocked: bb, By: "Ada", Reason: "cakes are wrong",
		}
		f.Blocks = []intent.Block{{Commit: bb, By: "Ada", Reason: "cakes are wrong", At: at}}
		return f
	}
	with := func(f intent.StandingFacts, change func(*intent.StandingFacts)) intent.StandingFacts {
		change(&f)
		return f
	}
	failing := func(f intent.StandingFacts) intent.StandingFacts {
		f.Last.Success, f.Last.Problem = false, "no such attribute"
		return f
	}
	for name, c := range map[string]struct {
		facts intent.StandingFacts
		kinds string
		says  []string
	}{
		"nothing yet": {intent.StandingFacts{}, "nothing", []string{"Nothing is deployed yet."}},
		"the tip":     {deployed(aa), "same", []string{"Version 4 from aaaaaaa is deployed, the newest commit."}},
		"the push failed": {
			failing(pushed(bb)), "failed", []string{"failed on bbbbbbb, so version 4 stays", "no such attribute"},
		},
		"the first push failed": {
			intent.StandingFacts{Tip: run(bb, false), Last: run(bb, false)}, "failed",
			[]string{"Nothing is deployed yet. The last run failed on bbbbbbb."},
		},
		"a recompile of the tip failed": {failing(deployed(aa)), "failed", []string{"an earlier run deployed"}},
		"it could not even be fetched": {
			with(pushed(aa), func(f *intent.StandingFacts) { f.Last = run("", false) }), "failed",
			[]string{"before it chose a commit"},
		},
		"a newer one compiles after a failure": {
			with(failing(pushed(bb)), func(f *intent.StandingFacts) {
				f.Tip = run(cc, false)
				f.Running = f.Tip
				f.Running.Stage = intent.StageInstall
			}), "compiling", []string{"ccccccc is being compiled (installing modules)"},
		},
		"one waits for a run": {
			with(deployed(aa), func(f *intent.StandingFacts) {
				f.Running = run(bb, false)
				f.Waiting = run("", false)
				f.Waits = &intent.Wait{Kind: intent.WaitsRun, Text: "the run before it"}
			}), "compiling waiting", []string{"waits for the run before it"},
		},
		"one waits for a quota": {
			with(deployed(aa), func(f *intent.StandingFacts) {
				f.Waiting = run("", false)
				f.Waits = &intent.Wait{Kind: intent.WaitsQuota, Text: "the project's other compiles"}
			}), "quota", nil,
		},
		"rolled back": {
			back(with(pushed(bb), func(*intent.StandingFacts) {})), "rolled_back",
			[]string{"Ada rolled back from version 3 to 2: “cakes are wrong”; bbbbbbb is blocked"},
		},
		"rolled back, and the next push fails": {back(failing(pushed(cc))), "failed rolled_back", []string{"ccccccc"}},
		"a compile of the blocked commit": {
			back(with(failing(pushed(bb)), func(f *intent.StandingFacts) {
				f.Git = &intent.GitState{Kind: intent.GitBlocked, Commit: bb, Message: "bbbbbbb is blocked"}
			})), "rolled_back", nil,
		},
		"blocked, with another version released since": {
			with(pushed(bb), func(f *intent.StandingFacts) {
				f.Blocks = []intent.Block{{Commit: bb, By: "Ada", Reason: "wrong"}}
			}),
			"blocked", []string{"Ada blocked bbbbbbb: “wrong”"},
		},
		"not signed": {
			with(failing(pushed(bb)), func(f *intent.StandingFacts) {
				f.Git = &intent.GitState{Kind: intent.GitUnsigned, Commit: bb, Message: "bbbbbbb is not signed"}
			}), "unsigned", []string{"bbbbbbb was refused"},
		},
		"unreadable": {
			with(deployed(aa), func(f *intent.StandingFacts) {
				f.Last = run("", false)
				f.Git = &intent.GitState{Kind: intent.GitFailing, Message: "no route to host."}
			}), "unreadable", []string{"cannot be read: no route to host."},
		},
		"held": {
			with(pushed(bb), func(f *intent.StandingFacts) {
				f.Newer = version(5, bb)
				f.Newer.Hold = &intent.Hold{Text: "it takes away 9 of 10 resources"}
			}), "held", []string{"Version 5 waits for a person: it takes away"},
		},
		"not released": {
			with(pushed(bb), func(f *intent.StandingFacts) { f.Newer = version(5, bb) }), "unreleased", nil,
		},
		"a promotion waits": {
			with(deployed(aa), func(f *intent.StandingFacts) {
				f.Promotion = &intent.Promotion{
					Commit: bb, SourceName: "staging",
					Gates: []intent.PromotionGate{{Gate: intent.GateSoak, Text: "it soaks until noon"}},
				}
			}), "promotion", []string{"bbbbbbb of staging waits to be promoted: it soaks until noon."},
		},
		"halted with the tip deployed": {
			with(deployed(aa), func(f *intent.StandingFacts) {
				f.Environment.Halted, f.Environment.HaltedBy = true, "Ada"
			}), "same", nil,
		},
		"halted while a commit waits": {
			with(deployed(aa), func(f *intent.StandingFacts) {
				f.Environment.Halted, f.Environment.HaltedBy = true, "Ada"
				f.Waiting = run("", false)
			}), "halted waiting", []string{"Ada halted the environment"},
		},
		"a window": {
			with(deployed(aa), func(f *intent.StandingFacts) {
				f.Window = "waits for window `nightly`, opens 02:00"
			}), "window",
			[]string{"Changes of version 4 wait"},
		},
		"cancelled": {
			with(failing(pushed(bb)), func(f *intent.StandingFacts) { f.Last.Cancelled = &ada }), "cancelled",
			[]string{"Ada cancelled the compile of bbbbbbb"},
		},
		"a recompile of the tip cancelled": {
			with(failing(deployed(aa)), func(f *intent.StandingFacts) { f.Last.Cancelled = &ada }), "same", nil,
		},
		"not from a commit": {
			with(pushed(bb), func(f *intent.StandingFacts) { f.Active.Provenance.Commit = "" }), "not_committed",
			[]string{"Version 4 is deployed, which is not from a commit."},
		},
		"an older version released by hand": {pushed(bb), "other_released", []string{"newest commit is bbbbbbb"}},
	} {
		s := Decide(c.facts)
		var kinds []string
		for _, w := range s.Why {
			kinds = append(kinds, string(w.Kind))
		}
		if len(kinds) == 0 {
			kinds = []string{string(s.Kind())}
		}
		if got := strings.Join(kinds, " "); got != c.kinds {
			t.Errorf("%s: %s instead of %s: %s", name, got, c.kinds, s.Text)
		}
		for _, part := range c.says {
			if !strings.Contains(s.Text, part) {
				t.Errorf("%s: %q does not say %q", name, s.Text, part)
			}
		}
	}
}
