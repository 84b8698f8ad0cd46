package standing

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

func (f facts) halted() intent.Difference {
	by := intent.Actor{By: f.Environment.HaltedBy}
	d := intent.Difference{
		Kind: intent.StandsHalted, By: &by, Text: "The environment is halted: nothing is compiled or deployed",
	}
	if at := f.Environment.HaltedAt; at != nil {
		by.At = *at
	}
	if by.By != "" {
		d.Text = by.By + " halted the environment: nothing is compiled or deployed until it is resumed"
	}
	return d
}

func (f facts) compiling() *intent.Difference {
	r := f.Running
	if r == nil {
		return nil
	}
	d := &intent.Difference{Kind: intent.StandsCompiling, Run: &r.ID, Stage: r.Stage, Commit: r.Revision.Commit}
	what := "A run"
	if r.Revision.Commit != "" {
		what = r.Revision.Short()
	}
	d.Text = what + " is being compiled"
	if r.Stage != "" {
		d.Text += " (" + strings.ToLower(r.Stage[:1]) + r.Stage[1:] + ")"
	}
	if by := r.Cancelled; by != nil {
		d.By, d.Text = by, what+" is being cancelled by "+by.By
	}
	return d
}

func (f facts) waiting() *intent.Difference {
	r := f.Waiting
	if r == nil {
		return nil
	}
	d := &intent.Difference{Kind: intent.StandsWaiting, Run: &r.ID, Text: "A compile waits to start"}
	if f.Waits != nil && f.Waits.Kind != intent.WaitsStart {
		d.Text, d.Waits = "A compile waits for "+f.Waits.Text, f.Waits.Text
	}
	if f.Waits != nil && f.Waits.Kind == intent.WaitsQuota {
		d.Kind = intent.StandsQuota
	}
	return d
}

func (f facts) unreadable() *intent.Difference {
	if f.Git == nil || f.Git.Kind != intent.GitFailing {
		return nil
	}
	return &intent.Difference{
		Kind: intent.StandsUnreadable, Advice: f.Git.Advice,
		Text: "The repository cannot be read: " + strings.TrimRight(f.Git.Message, "."),
	}
}

// ended returns what is wrong with the newest run that ended.
func (f facts) ended(same bool) *intent.Difference {
	r := f.Last
	if r == nil || r.Success {
		return nil
	}
	commit := r.Revision.Commit
	if f.Tip != nil && commit != "" && commit != f.Tip.Revision.Commit {
		return nil // a newer commit is on its way
	}
	if f.Git != nil && (f.Git.Kind == intent.GitFailing && commit == "" ||
		f.Git.Kind.Refused() && f.Git.Commit == commit) {
		return nil // the state of the repository says why
	}
	what := "the last run"
	if commit != "" {
		what = r.Revision.Short()
	}
	stays := ""
	if f.Active != nil {
		stays = fmt.Sprintf(", so version %d stays active", f.Active.Number)
	}
	switch {
	case r.Cancelled != nil && (same || commit == "" && !moved(r.Trigger)):
		return nil // nothing is missing for it
	case r.Cancelled != nil:
		text := r.Cancelled.By + " cancelled the compile of " + what
		if r.Cancelled.Reason != "" {
			text += ": “" + r.Cancelled.Reason + "”"
		}
		return &intent.Difference{Kind: intent.StandsCancelled, Text: text, Run: &r.ID, Commit: commit, By: r.Cancelled}
	case commit == "":
		what = "before it chose a commit" + stays
	case same:
		what = "on " + what + ", which an earlier run deployed"
	default:
		what = "on " + what + stays
	}
	d := &intent.Difference{Kind: intent.StandsFailed, Text: "The last run failed " + what, Run: &r.ID, Commit: commit}
	if r.Problem != "" {
		d.Text += ": " + strings.TrimRight(r.Problem, ".: ")
	}
	return d
}

// moved reports whether a trigger says that there is a new commit.
func moved(trigger string) bool {
	switch trigger {
	case "webhook", "poll", "watch", intent.TriggerPromotion:
		return true
	}
	return false
}

// block returns the block of a commit; nil when it is not blocked.
func (f facts) block(commit string) *intent.Block {
	for i := range f.Blocks {
		if commit != "" && f.Blocks[i].Commit == commit {
			return &f.Blocks[i]
		}
	}
	return nil
}

// refusals are the kinds of a commit that the policy of the environment rejects.
var refusals = map[intent.GitKind]intent.DifferenceKind{
	intent.GitUnsigned: intent.StandsUnsigned, intent.GitRewritten: intent.StandsRewritten,
	intent.GitProtected: intent.StandsProtected,
}

func (f facts) refused(same bool) *intent.Difference {
	if f.Git == nil || same {
		return nil
	}
	kind, refused := refusals[f.Git.Kind]
	if !refused {
		return nil
	}
	d := &intent.Difference{
		Kind: kind, Commit: f.Git.Commit, Advice: f.Git.Advice,
		Text: intent.Revision{Commit: f.Git.Commit}.Short() + " was refused: " + strings.TrimRight(f.Git.Message, "."),
	}
	if f.Last != nil && f.Last.Revision.Commit == f.Git.Commit {
		d.Run = &f.Last.ID
	}
	return d
}

func (f facts) rolledBack() *intent.Difference {
	if f.Active == nil || f.Active.Provenance.RolledBack == nil {
		return nil
	}
	b := f.Active.Provenance.RolledBack
	d := &intent.Difference{
		Kind: intent.StandsRolledBack, Commit: b.Blocked, Version: f.Active.Number,
		By:   &intent.Actor{By: b.By, Reason: b.Reason, At: b.At},
		Text: fmt.Sprintf("%s rolled back from version %d to %d: “%s”", b.By, b.From, b.To, b.Reason),
	}
	if f.block(b.Blocked) != nil {
		d.Text += "; " + intent.Revision{Commit: b.Blocked}.Short() + " is blocked"
		d.Advice = "push a fix: a newer commit is deployed as usual; or unblock " +
			intent.Revision{Commit: b.Blocked}.Short()
	}
	return d
}

// blocked returns the block of the tip, unless the rollback that made it says so already.
func (f facts) blocked(said []intent.Difference, same bool) *intent.Difference {
	if f.Tip == nil || same {
		return nil
	}
	b := f.block(f.Tip.Revision.Commit)
	if b == nil {
		return nil
	}
	for _, d := range said {
		if d.Kind == intent.StandsRolledBack && d.Commit == b.Commit {
			return nil
		}
	}
	short := intent.Revision{Commit: b.Commit}.Short()
	return &intent.Difference{
		Kind: intent.StandsBlocked, Commit: b.Commit, By: &intent.Actor{By: b.By, Reason: b.Reason, At: b.At},
		Text:   fmt.Sprintf("%s blocked %s: “%s”", b.By, short, b.Reason),
		Advice: "push a fix: a newer commit is deployed as usual; or unblock " + short,
	}
}

func (f facts) unreleased() *intent.Difference {
	v := f.Newer
	if v == nil {
		return nil
	}
	d := &intent.Difference{Kind: intent.StandsUnreleased, Version: v.Number, Commit: v.Provenance.Commit}
	if v.Provenance.Compile != (intent.CompileID{}) {
		d.Run = &v.Provenance.Compile
	}
	d.Text = fmt.Sprintf("Version %d waits to be released", v.Number)
	if v.Hold != nil {
		d.Kind = intent.StandsHeld
		d.Text = fmt.Sprintf("Version %d waits for a person: %s", v.Number, strings.TrimRight(v.Hold.Text, "."))
	}
	return d
}

func (f facts) promotion(same bool) *intent.Difference {
	p := f.Promotion
	if p == nil || same {
		return nil
	}
	d := &intent.Difference{
		Kind: intent.StandsPromotion, Commit: p.Commit,
		Text: p.Short() + " of " + p.SourceName + " waits to be promoted",
	}
	for i, gate := range p.Held() {
		sep := ": "
		if i > 0 {
			sep = ", "
		}
		d.Text += sep + gate.Text
		if d.Until.Before(gate.Until) {
			d.Until = gate.Until
		}
	}
	return d
}

// otherwise says why the tip is not deployed when nothing else does.
func (f facts) otherwise(s intent.Standing) *intent.Difference {
	switch {
	case s.Deployed == nil:
		return nil
	case s.Deployed.Commit == "" && s.Tip != nil:
		return &intent.Difference{
			Kind: intent.StandsNotCommitted, Version: s.Deployed.Version, Commit: s.Tip.Commit,
			Text: fmt.Sprintf("Version %d did not come from a commit; the newest commit is %s", s.Deployed.Version,
				intent.Revision{Commit: s.Tip.Commit}.Short()),
		}
	case s.Tip != nil:
		return &intent.Difference{
			Kind: intent.StandsOther, Version: s.Deployed.Version, Commit: s.Tip.Commit, Run: &f.Tip.ID,
			Text: fmt.Sprintf("The newest commit is %s, and a version of another commit was released",
				intent.Revision{Commit: s.Tip.Commit}.Short()),
		}
	}
	return nil
}

func (f facts) window() *intent.Difference {
	if f.Window == "" || f.Active == nil {
		return nil
	}
	return &intent.Difference{
		Kind: intent.StandsWindow, Version: f.Active.Number, Until: f.WindowUntil,
		Text: fmt.Sprintf("Changes of version %d wait: %s", f.Active.Number, f.Window),
	}
}
