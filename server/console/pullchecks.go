package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/comparison"
	"ordain.dev/ordain/server/forge"
)

// reviewed is what is known of a pull request when its page is made.
type reviewed struct {
	forge.Review
	env    intent.Environment
	pull   intent.PullRequest
	index  *comparison.Index // of its preview; nil: there is none
	active *intent.Version
}

// checkList lists what the server looked at, what stops the change first.
type checkList struct {
	Rows    []checkRow
	Stops   int // checks that stop the change
	Delays  int // checks that delay it
	Running bool
}

// checkRow is one check, such as that the commit is signed.
type checkRow struct {
	Name  string
	State state
	Text  string
	URL   string // where the policy is set
}

// approvalCard says whose code may run, and who said so.
type approvalCard struct {
	PageURL  string
	Needed   int // approvals that are still needed
	By       string
	At       *time.Time
	Commit   string // that was approved
	Old      bool   // newer commits were pushed since
	Why      string
	Form     bool // it can be approved here
	Full     string
	ForgeURL string
}

var (
	checkPasses  = state{"intended", "passes"}
	checkFails   = state{"failed", "fails"}
	checkRefuses = state{"failed", "refused"}
	checkHolds   = state{"paused", "holds"}
	checkWaits   = state{"waiting", "waits"}
	checkOff     = state{"none", "not asked for"}
	checkOld     = state{"differs", "outdated"}
)

func approvalCardOf(p intent.PullRequest) approvalCard {
	out := approvalCard{
		PageURL: pullURL(p.Environment, p.Number), By: p.ApprovedBy, At: p.ApprovedAt, Full: p.Head,
		Commit: intent.Revision{Commit: p.Approved}.Short(), Old: p.Approved != "" && p.Approved != p.Head,
	}
	switch {
	case p.State != intent.PullIsOpen:
		out.Why = "The pull request is " + string(p.State) + ": no approval is needed any more."
	case p.Trusted:
		out.Why = p.Author + " may write to the repository: no approval is needed to run the code."
	case p.MayRun():
		out.Why = "One approval of exactly this commit was needed, and was given."
	case p.Fork:
		out.Needed, out.Why = 1, "One approval of exactly this commit is needed, because it comes from a fork."
	default:
		out.Needed = 1
		out.Why = "One approval of exactly this commit is needed, because " + p.Author +
			" may not write to the repository."
	}
	out.Form = out.Needed > 0
	if links := forgeLinks(p); len(links) > 0 {
		out.ForgeURL = links[0].URL
	}
	return out
}

// numbers says how much a pull request would touch; nothing as long as that is not known.
func (v reviewed) numbers() (out []pullNumberRow) {
	if v.index == nil || v.pull.Preview.Version == 0 {
		return nil
	}
	kinds := v.index.Kinds()
	touched := 0
	for _, kind := range []struct {
		text string
		kind intent.DiffKind
	}{{"created", intent.DiffAdded}, {"changed", intent.DiffModified}, {"purged", intent.DiffDeleted}} {
		touched += kinds[kind.kind]
		out = append(out, pullNumberRow{Text: kind.text, N: kinds[kind.kind]})
	}
	out = append(out, pullNumberRow{Text: "no longer managed", N: len(v.Gone)})
	part := pullNumberRow{Text: "resources touched", N: touched}
	if all := v.pull.Preview.Total; all > 0 {
		part.Note = fmt.Sprintf("of %s, %s", count(all), percent(touched, all))
	}
	return append(out, part, pullNumberRow{Text: "agents", N: v.index.Agents()},
		pullNumberRow{Text: "types", N: v.index.Types()})
}

// percent writes a part of a whole; what is there is never 0%, and what lacks something never 100%.
func percent(part, whole int) string {
	n := part * 100 / whole
	switch {
	case part > 0 && n == 0:
		return "less than 1%"
	case part < whole && n == 100:
		return "more than 99%"
	}
	return strconv.Itoa(n) + "%"
}

// checks says what each policy says of the pull request.
func (v reviewed) checks(now time.Time) (out checkList) {
	if v.pull.State != intent.PullIsOpen {
		return checkList{}
	}
	add := func(name string, look state, text string) {
		out.Rows = append(out.Rows, checkRow{Name: name, State: look, Text: text})
		switch look {
		case checkFails, checkRefuses, checkHolds:
			out.Stops++
		case checkWaits, checkOld:
			out.Delays++
		case running:
			out.Running = true
		}
	}
	v.checkCode(add)
	v.checkSignature(add)
	if v.index == nil || v.pull.PreviewState() != intent.PreviewDone {
		return out
	}
	v.checkResult(add)
	v.checkRemoval(add)
	v.checkTimes(add, now)
	return out
}

// addCheck takes a check.
type addCheck func(name string, look state, text string)

// checkCode says whether the code may run, and whether it compiles.
func (v reviewed) checkCode(add addCheck) {
	p := v.pull
	switch {
	case p.Trusted:
		add("Approval", checkPasses, "its author may write to the repository")
	case p.MayRun():
		add("Approval", checkPasses, "approved by "+p.ApprovedBy)
	default:
		add("Approval", checkHolds, "its code does not run here before one person approves it")
		return
	}
	switch p.PreviewState() {
	case intent.PreviewDone:
		add("Model", checkPasses, "it compiles")
	case intent.PreviewFailed:
		text := p.Problem
		if p.Preview != nil && text == "" {
			text = p.Preview.Reason
		}
		if len(v.Errors) > 0 {
			text = "it does not compile; the errors are above"
		}
		add("Model", checkFails, text)
	case intent.PreviewRunning:
		text := "it is being compiled"
		if p.Preview.Version > 0 {
			text = "it compiles; what it would change is being looked at"
		}
		add("Model", running, text)
	case intent.PreviewOld:
		add("Model", checkOld, "its preview was cancelled")
	default:
		add("Model", checkWaits, "its preview was not started yet")
	}
}

func (v reviewed) checkSignature(add addCheck) {
	switch v.Signature {
	case forge.SignatureRefused:
		add("Signature", checkRefuses, v.Refused)
	case forge.SignatureFine:
		add("Signature", checkPasses, "it is signed with a key that git_allowed_signers names")
	case forge.SignatureUnknown:
		add("Signature", checkWaits, "the commit was not fetched yet")
	default:
		if v.env.GitPolicy().Verify == "tags" {
			add("Signature", checkOff, "only tags have to be signed")
			return
		}
		add("Signature", checkOff, "git_verify is off")
	}
}

// checkResult says whether everything was looked at, and whether it was compared with what is deployed now.
func (v reviewed) checkResult(add addCheck) {
	unknown, undefined := 0, 0
	for kind, n := range v.index.Kinds() {
		switch {
		case kind.Unknown():
			unknown += n
		case kind == intent.DiffUndefined || kind == intent.DiffSkipped:
			undefined += n
		}
	}
	switch {
	case unknown > 0:
		add("Dry run", checkWaits,
			plural(unknown, "resource")+" could not be checked; run it again when their agents answer")
	case undefined > 0:
		add("Dry run", checkPasses, plural(undefined, "resource")+" wait for values that are not known yet")
	default:
		add("Dry run", checkPasses, "every resource was checked")
	}
	base := v.pull.Preview.Base
	switch {
	case v.active == nil:
		add("Base", checkPasses, "nothing is deployed yet")
	case v.active.Number == base:
		add("Base", checkPasses, fmt.Sprintf("compared with version %d, which is deployed", base))
	default:
		add("Base", checkOld, fmt.Sprintf("compared with version %d; version %d is deployed now: run the preview again",
			base, v.active.Number))
	}
}

func (v reviewed) checkRemoval(add addCheck) {
	guard := intent.GuardOf(v.env)
	switch {
	case v.Hold != nil && !v.Hold.Confirmable():
		add("Removal limits", checkHolds,
			v.Hold.Text+"; nobody can confirm it while protected_resources protects these")
	case v.Hold != nil:
		add("Removal limits", checkHolds, v.Hold.Text+"; a person would have to confirm it")
	default:
		gone := v.index.Kinds()[intent.DiffDeleted] + len(v.Gone)
		add("Removal limits", checkPasses, fmt.Sprintf("it takes away %s; more than %d%% and at least %d would be held",
			plural(gone, "resource"), guard.Share, guard.Minimum))
	}
}

// checkTimes says what would wait: for windows and freezes, for a person who resumes the environment, for the
// environment that this one follows.
func (v reviewed) checkTimes(add addCheck, now time.Time) {
	windows, err := v.env.Windows()
	switch {
	case len(v.Windows) > 0:
		add("Windows", checkWaits, strings.Join(v.Windows, "; "))
	case err == nil && len(windows) == 0:
		add("Windows", checkPasses, "changes may start at any time")
	default:
		add("Windows", checkPasses, "its changes may start now")
	}
	if v.env.Halted {
		add("Environment", checkWaits, "it is halted: nothing is deployed until somebody resumes it")
	}
	if source := v.env.Follows(); source != "" {
		policy, gates := v.env.FollowPolicy(), []string{"deployed there"}
		if policy.Soak > 0 {
			gates = append(gates, "for "+duration(policy.Soak))
		}
		if policy.Compliant {
			gates = append(gates, "every resource as intended")
		}
		if policy.NoDrift {
			gates = append(gates, "no drift")
		}
		if policy.Approval {
			gates = append(gates, "an approval of the commit")
		}
		add("Promotion", checkWaits, "after the merge the commit comes from "+source+", when it is "+
			strings.Join(gates, ", "))
	}
}
