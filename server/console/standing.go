package console

import (
	"slices"
	"strconv"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// standingView says why what is deployed is not the tip of the branch. It is the same on every page.
type standingView struct{ Notes []standingNote }

// standingNote is one reason, as a banner.
type standingNote struct {
	kind   intent.DifferenceKind
	Look   string // failed or held
	Text   string
	Advice string
	When   *time.Time
	Links  []standingLink
}

type standingLink struct{ Text, URL string }

// quiet are the reasons that need no banner: lists and steps show them, and they pass by themselves.
var quiet = []intent.DifferenceKind{
	intent.StandsCompiling, intent.StandsWaiting, intent.StandsWindow, intent.StandsHalted,
}

// bad are the reasons that a person has to do something about.
var bad = []intent.DifferenceKind{
	intent.StandsFailed, intent.StandsUnreadable, intent.StandsUnsigned, intent.StandsRewritten, intent.StandsProtected,
}

// standingOf returns the reasons that a page shows as banners.
func (c *console) standingOf(env intent.EnvironmentID, now intent.Standing) (out standingView) {
	for _, d := range now.Why {
		if slices.Contains(quiet, d.Kind) {
			continue
		}
		note := standingNote{kind: d.Kind, Look: "held", Text: d.Text, Advice: d.Advice}
		if slices.Contains(bad, d.Kind) {
			note.Look = "failed"
		}
		if d.By != nil && !d.By.At.IsZero() {
			note.When = &d.By.At
		}
		link := func(text, url string) { note.Links = append(note.Links, standingLink{text, url}) }
		if d.Run != nil {
			link("See the run", runURL(env, *d.Run))
		}
		if d.Version > 0 {
			link("Version "+strconv.Itoa(d.Version), versionURL(env, d.Version))
		}
		switch d.Kind {
		case intent.StandsRolledBack, intent.StandsBlocked:
			if d.Advice != "" {
				link("Unblock "+short(d.Commit), envURL(env)+"/git#git-blocks")
			}
		case intent.StandsUnreadable, intent.StandsUnsigned, intent.StandsRewritten, intent.StandsProtected:
			link("The repository", envURL(env)+"/git")
		case intent.StandsPromotion:
			link("The promotion", envURL(env)+"/git#git-promotion")
		case intent.StandsHeld:
			note.Links[len(note.Links)-1].URL += "#hold"
		}
		out.Notes = append(out.Notes, note)
	}
	return out
}

// ofVersion keeps of a standing what it says about a version: all of it for the one that is deployed, and what is about
// it for another one. A hold has a form of its own on the page of the version.
func ofVersion(now intent.Standing, v intent.Version) intent.Standing {
	deployed := now.Deployed != nil && now.Deployed.Version == v.Number
	now.Why = slices.DeleteFunc(slices.Clone(now.Why), func(d intent.Difference) bool {
		return d.Kind == intent.StandsHeld && d.Version == v.Number || !deployed && d.Version != v.Number
	})
	return now
}

// dropGit leaves out what the Git page says elsewhere: the state of the repository.
func (v *standingView) dropGit() {
	v.Notes = slices.DeleteFunc(v.Notes, func(n standingNote) bool {
		return slices.Contains(bad, n.kind) && n.kind != intent.StandsFailed
	})
}

// notTheNewest adds to the state of the resources that the newest commit is not deployed, and why. Resources that are
// as intended do not make an environment well whose newest commit failed.
func notTheNewest(now intent.Standing, look state, text string) (state, string) {
	if now.Deployed == nil || len(now.Why) == 0 {
		return look, text
	}
	d := now.Find(bad...)
	switch {
	case d != nil && d.Kind == intent.StandsUnreadable:
		return failed, "The repository cannot be read. " + text
	case d != nil && d.Kind == intent.StandsFailed && d.Commit == now.Deployed.Commit:
		return worse(look, state{"differs", "sync failed"}), "The last run failed. " + text
	case d != nil:
		return failed, "The newest commit is not deployed. " + text
	}
	for _, other := range []struct {
		kind intent.DifferenceKind
		look state
		text string
	}{
		{intent.StandsRolledBack, state{"differs", "rolled back"}, "Rolled back. "},
		{intent.StandsBlocked, state{"differs", "blocked"}, "The newest commit is blocked. "},
		{intent.StandsCancelled, state{"differs", "cancelled"}, "The compile of the newest commit was cancelled. "},
		{intent.StandsHeld, held, "A version is held. "},
		{intent.StandsCompiling, state{"deploying", "compiling"}, "The newest commit is being compiled. "},
		{intent.StandsQuota, waiting, "A compile waits for a quota. "},
		{intent.StandsNotCommitted, state{"differs", "not from a commit"}, "What is deployed is not from a commit. "},
		{intent.StandsOther, state{"differs", "not the newest"}, "The newest commit is not deployed. "},
	} {
		d := now.Find(other.kind)
		if d == nil || d.Kind == intent.StandsCompiling && (d.Commit == "" || d.Commit == now.Deployed.Commit) {
			continue
		}
		return worse(look, other.look), other.text + text
	}
	return look, text
}

// worse returns the more urgent one of two states; the first when they are equally so.
func worse(a, b state) state {
	if pressing(b) < pressing(a) {
		return b
	}
	return a
}

// pressingOrder are the looks of states, the most urgent one first.
var pressingOrder = []string{"failed", "undefined", "differs", "paused", "waiting", "deploying", "none"}

// pressing orders states: the lower, the sooner a person wants to see it.
func pressing(s state) int {
	if i := slices.Index(pressingOrder, s.Key); i >= 0 {
		return i
	}
	return len(pressingOrder)
}

// sayWaits adds to the runs that wait what the oldest of them waits for.
func sayWaits(rows []runRow, now intent.Standing) {
	d := now.Find(intent.StandsWaiting, intent.StandsQuota)
	if d == nil || d.Waits == "" {
		return
	}
	for i := range rows {
		if rows[i].State == waiting {
			rows[i].Waits = d.Waits
		}
	}
}

// markRolledBack says in the list of commits which of them is active after a rollback, and which was rolled back.
func markRolledBack(rows []gitCommitRow, now intent.Standing, env intent.EnvironmentID) {
	if now.Deployed == nil || now.Deployed.RolledBack == nil {
		return
	}
	marked := false
	for i := range rows {
		switch row := &rows[i]; {
		case row.Full == now.Deployed.Commit && row.Version == now.Deployed.RolledBack.To && !marked:
			marked = true
			row.State, row.Version = active, now.Deployed.Version
			row.VersionURL = versionURL(env, now.Deployed.Version)
		case row.Full == now.Deployed.RolledBack.Blocked && row.State == retired:
			row.State = rolledBack
		}
	}
}
