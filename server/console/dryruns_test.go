package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// The page of a dry run whose commit does not compile shows the errors with their place, and links to the report.
func TestDryRunPageShowsWhyACommitDoesNotCompile(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	run := intent.DryRun{
		ID: uuid.New(), Environment: r.Production.ID, Date: r.Now(), Commit: "feature", Compile: &r.Failed,
	}
	must(t, r.Store.CreateDryRun(t.Context(), run))
	must(t, r.Store.EndDryRun(t.Context(), r.Production.ID, run.ID, intent.DryRunFailed,
		"the commit could not be compiled: the model has errors", nil, r.Now()))
	page := get(t, h, dryRunURL(r.Production.ID, run.ID)).Body.String()
	for _, want := range []string{
		"the model has errors", `id="diagnostics"`, "main.cf", runURL(r.Production.ID, r.Failed),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if strings.Contains(page, `aria-label="What the compiler says" hidden`) {
		t.Error("the errors are hidden")
	}
}

// The page of a dry run separates what is known from what is not, says why, lists what is no longer managed, and cuts
// long values, with a link to all of each.
func TestDryRunPageSaysWhatIsUnknown(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	ctx, env := t.Context(), "/e/"+r.Production.ID.String()+"/dryruns/"
	page := get(t, h, env+r.DryRun.String()).Body.String()
	for _, want := range []string{
		"It would change 3 resources on 3 agents. 2 resources could not be checked.", "incomplete",
		"unknown: not reached", "unknown: the handler failed", "no route to web09", "no such folder",
		"would be created first", "No longer managed", "/srv/www/left.html",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	long := strings.Repeat("0123456789", 1000)
	run := intent.DryRun{
		ID: uuid.New(), Environment: r.Production.ID, Version: 7, Date: r.Now(), Total: 1, Todo: 1, Base: 6,
	}
	must(t, r.Store.CreateDryRun(ctx, run))
	must(t, r.Store.AddDryRunDiffs(ctx, r.Production.ID, run.ID, []intent.ResourceDiff{{
		ID: r.FailedFile, Kind: intent.DiffModified,
		Attributes: map[string]intent.AttributeChange{"content": {Current: long + "was", Desired: long + "will"}},
	}}))
	must(t, r.Store.EndDryRun(ctx, r.Production.ID, run.ID, intent.DryRunDone, "", nil, r.Now()))
	page = get(t, h, env+run.ID.String()).Body.String()
	if strings.Contains(page, long) || !strings.Contains(page, "See all of it") {
		t.Error("a long value is not cut")
	}
	value := env + run.ID.String() + "/value?attribute="
	whole := get(t, h, value+"content&id="+url.QueryEscape(r.FailedFile.String()))
	if text := whole.Body.String(); !strings.Contains(text, long+"was") || !strings.Contains(text, long+"will") ||
		!strings.HasPrefix(whole.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("%v %.200s", whole.Header(), text)
	}
	if w := get(t, h, value+"nothing&id=x"); w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
}

// The page of a dry run of a commit says that the commit is being compiled, and whether the run was cancelled.
func TestDryRunPageOfACommit(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	place := post(h, env+"/dryruns", url.Values{"commit": {"feature<x>"}}).Header().Get("Location")
	page := get(t, h, place).Body.String()
	if !strings.Contains(page, "Dry run of commit feature&lt;x&gt;") ||
		!strings.Contains(page, "Its commit is being compiled.") ||
		!strings.Contains(page, "Cancel") {
		t.Error(page)
	}
	if w := post(h, place+"/cancel", nil); w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if page := get(t, h, place).Body.String(); !strings.Contains(page, "cancelled") ||
		strings.Contains(page, "/cancel") {
		t.Error(page)
	}
	if page := get(t, h, env+"/versions").Body.String(); !strings.Contains(page, "commit feature&lt;x&gt;") {
		t.Error("the list of versions does not have it")
	}
}
