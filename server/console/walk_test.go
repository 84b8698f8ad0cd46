package console

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// What a walk through every page found, 2026-11-28.

// A step that a run took no time for, because it did not need it, is no gap: later steps are done.
func TestARunSaysWhichStepsItDidNotNeed(t *testing.T) {
	t.Parallel()
	word := func(steps []step) (out []string) {
		passOver(steps)
		for _, s := range steps {
			out = append(out, s.State.Word)
		}
		return out
	}
	for _, c := range []struct {
		steps []state
		want  string
	}{
		{[]state{finished, finished, notYet, finished, running, notYet}, "done done not needed done running not yet"},
		{[]state{finished, notReached, failed, notReached}, "done not needed failed not reached"},
		{[]state{waiting, notYet, notYet}, "waiting not yet not yet"},
		{[]state{finished, {"none", "not asked for"}, notReached}, "done not asked for not reached"},
	} {
		var steps []step
		for _, s := range c.steps {
			steps = append(steps, step{State: s})
		}
		if got := strings.Join(word(steps), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A run that went well has no step that was not reached.
func TestAGoodRunHasNoGaps(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	page := get(t, h, runURL(r.Production.ID, r.Good)).Body.String()
	if strings.Contains(page, "not reached") || !strings.Contains(page, "not needed") {
		t.Error("a step that was left out counts as not reached")
	}
}

// The run of a dry run does not say that its version was active once.
func TestTheRunOfADryRunDeploysNothing(t *testing.T) {
	t.Parallel()
	b := newBakery(t)
	b.deploy("4c81d20")
	run := intent.Compile{
		ID: uuid.New(), Environment: b.env, Requested: b.Now(), Export: true, Trigger: intent.Trigger{Type: "dryrun"},
	}
	must(t, b.Store.StartPreview(t.Context(), run))
	v := intent.NewVersion{Environment: b.env, Preview: true, Resources: []intent.Resource{{
		ID: b.id, Attributes: json.RawMessage(`{"purged": false}`), AttributeHash: "2",
	}}}
	v.Provenance.Compile = run.ID
	number, err := b.Store.StoreVersion(t.Context(), v, b.Now())
	must(t, err)
	must(t, b.Store.FinishCompile(t.Context(), run.ID,
		intent.CompileEnd{Success: true, Version: &number, At: b.Now()}))
	page := b.page("/runs/" + run.ID.String())
	if strings.Contains(page, "was active") || !strings.Contains(page, "a dry run deploys nothing") {
		t.Error(page)
	}
}

// While a newer commit is compiled, an environment is not simply as intended; a sync of the same commit changes
// nothing.
func TestANewerCommitThatCompilesIsSeen(t *testing.T) {
	t.Parallel()
	now := intent.Standing{
		Deployed: &intent.Deployed{Version: 4, Commit: "4c81d20"},
		Why:      []intent.Difference{{Kind: intent.StandsCompiling, Commit: "9f03ab1"}},
	}
	look, text := notTheNewest(now, intended, "All 5 resources as intended.")
	if look.Word != "compiling" || text != "The newest commit is being compiled. All 5 resources as intended." {
		t.Errorf("%v %q", look, text)
	}
	if look, _ := notTheNewest(now, failed, ""); look != failed {
		t.Errorf("a compile hides a failure: %v", look)
	}
	now.Why[0].Commit = "4c81d20"
	if look, text := notTheNewest(now, intended, "Well."); look != intended || text != "Well." {
		t.Errorf("%v %q", look, text)
	}
}

// What only the older of two versions has is left as it is when the newer one is deployed. It is not purged.
func TestAComparisonOfVersionsSaysWhatIsNoLongerManaged(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	page := get(t, h, envURL(r.Production.ID)+"/compare?from=6&to=7").Body.String()
	if !strings.Contains(page, "no longer managed") || strings.Contains(page, "purged</span>") {
		t.Error("the comparison calls it purged")
	}
}

// The overview of an environment says who pushed a version that is not from a commit, and from where.
func TestTheOverviewSaysWhoPushedAVersion(t *testing.T) {
	t.Parallel()
	b := newBakery(t)
	b.deploy("4c81d20")
	v := intent.NewVersion{Environment: b.env, Resources: []intent.Resource{{
		ID: b.id, Attributes: json.RawMessage(`{"purged": false}`), AttributeHash: "2",
	}}}
	v.Provenance.Pushed = &intent.Pushed{By: "ida", User: "lind", Host: "laptop"}
	number, err := b.Store.StoreVersion(t.Context(), v, b.Now())
	must(t, err)
	must(t, b.Control.Release(t.Context(), b.env, number))
	contains(t, b.page(""), "not from a commit: pushed by ida (lind on laptop)")
}

// The fold with reasons says more than the sentence above it, or is not there.
func TestReasonsThatRepeatTheSentenceAreLeftOut(t *testing.T) {
	t.Parallel()
	one := intent.Why{Status: intent.StatusSkipped, Reasons: []intent.WhyReason{{Kind: "requires", Text: "it waits"}}}
	if got := whyMore(one); got != nil {
		t.Errorf("%q", got)
	}
	one.Reasons[0].Kind = "window"
	if got := whyMore(one); len(got) != 1 {
		t.Errorf("a window is not in the sentence: %q", got)
	}
	one.Reasons = append(one.Reasons, intent.WhyReason{Kind: "requires", Text: "it waits"})
	if got := whyMore(one); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// An environment without a repository offers no sync that would fail.
func TestWithoutARepositoryThereIsNothingToSync(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := newEnvironmentIn(t, r.Server, intent.Source{})
	for _, path := range []string{"", "/runs"} {
		page := get(t, h, envURL(env)+path).Body.String()
		if strings.Contains(page, ">Sync<") && !strings.Contains(page, "disabled>Sync<") ||
			strings.Contains(page, "sync what is there now") || !strings.Contains(page, "bound to no") {
			t.Errorf("%q offers a sync", path)
		}
	}
	if page := get(t, h, envURL(env)+"/graph").Body.String(); !strings.Contains(page, "Nothing is deployed yet") {
		t.Error("the graph speaks of a filter")
	}
}

// Lengths of time are written for people on every page: "5 min 0 s", not "5m0s".
func TestLengthsOfTimeAreForPeople(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	machine := regexp.MustCompile(`\b\d+m\d+(\.\d+)?s\b`)
	for name, path := range paths(r) {
		if found := machine.FindString(get(t, h, path).Body.String()); found != "" {
			t.Errorf("%s: %s", name, found)
		}
	}
}

// Long reasons wrap, names of agents stay whole, the check boxes stand beside their rows, and the entry of the page is
// in view in the menu, on a phone too.
func TestPagesKeepTheirShape(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := liveRich(t)
	run := intent.DryRun{ID: uuid.New(), Environment: r.Production.ID, Date: r.Now(), Commit: "nosuch",
		Compile: &r.Failed}
	must(t, r.Store.CreateDryRun(t.Context(), run))
	must(t, r.Store.EndDryRun(t.Context(), r.Production.ID, run.ID, intent.DryRunFailed, "the commit could not be "+
		"compiled: there is no branch or tag \"nosuch\" in file:///"+strings.Repeat("a/long/path/", 12), nil, r.Now()))
	b := browse(t, h)
	env := envURL(r.Production.ID)
	for _, width := range []int64{1280, 390} {
		b.look(width, 900, "light")
		b.open(dryRunURL(r.Production.ID, run.ID))
		b.fits("dry run")
		b.open(env + "/settings")
		b.until(`(() => { const a = document.querySelector('.side nav [aria-current]').getBoundingClientRect();
			return a.left >= 0 && a.right <= innerWidth && a.top >= 0 && a.bottom <= innerHeight })()`)
	}
	b.look(1280, 900, "light")
	// Settings are short, a link opens a part of them, and a mistake leaves the focus on its field.
	b.open(env + "/settings")
	b.until(`document.documentElement.scrollHeight < 3000`)
	b.do(chromedp.Click(chromedp.CSS(`.contents a[href*="group=secrets"]`)))
	b.until(`document.querySelector('details#secrets')?.open && !document.querySelector('details#source').open`)
	b.open(env + "/settings#setting-git_poll_interval")
	b.until(`document.getElementById('setting-git_poll_interval').closest('details').open`)
	eval[bool](b, `(document.getElementById('o-git_poll_interval').value = '2 parsecs', true)`)
	b.do(chromedp.Click(chromedp.CSS(`#setting-git_poll_interval button`)))
	b.until(`document.activeElement.id === 'o-git_poll_interval' &&
		document.activeElement.getAttribute('aria-invalid') === 'true' && document.activeElement.offsetHeight > 0`)
	b.open(env + "/resources")
	b.until(`[...document.querySelectorAll('tbody tr')].every(row => {
		const [box, state] = ['input', '.state'].map(s => row.querySelector(s).getBoundingClientRect());
		return Math.abs(box.top + box.height / 2 - state.top - state.height / 2) < 6 })`)
	whole := `[...document.querySelectorAll('td[data-label=Agent], td.agent')].every(td => {
		const range = document.createRange(); range.selectNodeContents(td);
		return td.textContent.length > 14 || new Set([...range.getClientRects()].map(r => r.top)).size === 1 })`
	b.until(whole)
	b.open(env + "/agents")
	b.until(whole)
	b.open(env + "/compare?from=6&to=7")
	b.until(`(() => { const [a, b] = document.querySelectorAll('.which-versions select');
		return Math.abs(a.offsetWidth - b.offsetWidth) < 3 && a.offsetWidth > 300 })()`)
}

// A preview that could not look at everything is no more ready than its dry run is.
func TestAPreviewWithGapsIsIncomplete(t *testing.T) {
	t.Parallel()
	at := time.Now()
	run := intent.DryRun{ID: uuid.New(), Ended: &at, Ending: intent.DryRunDone, Version: 3, Total: 6, Unknown: 2}
	pull := intent.PullRequest{State: intent.PullIsOpen, Trusted: true, Head: "h", PreviewOf: "h", DryRun: &run.ID}
	pull.Preview = &run
	if got := pullRowOf(pull).State; got != dryRunRowOf(run).State || got != incomplete {
		t.Errorf("%v", got)
	}
	run.Unknown = 0
	if got := pullRowOf(pull).State; got != ready {
		t.Errorf("%v", got)
	}
}
