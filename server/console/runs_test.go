package console

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// The page of a run that was cancelled for a newer commit links to the run of that commit.
func TestCancelledRunLinksToTheNewerOne(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	page := "/e/" + r.Production.ID.String() + "/runs/"
	if body := get(t, h, page+r.Running.String()).Body.String(); strings.Contains(body, "newer commit") {
		t.Errorf("a run that was not cancelled has the link:\n%s", body)
	}
	must(t, r.Store.FinishCompile(t.Context(), r.Running, intent.CompileEnd{At: r.Now(), SupersededBy: &r.Good}))
	body := get(t, h, page+r.Running.String()).Body.String()
	if !strings.Contains(body, `<a href="`+page+r.Good.String()+`">the run of a newer commit</a>`) {
		t.Errorf("no link to the newer run:\n%s", body)
	}
}

// A run says in words what asked for it, whatever the server records as its trigger.
func TestRunsSayWhatAskedForThem(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	if body := get(t, h, paths(r)["runs"]).Body.String(); !strings.Contains(body, "a dry run · <time") {
		t.Errorf("nothing says that a dry run asked for the preview:\n%s", body)
	}
	if body := get(t, h, paths(r)["run-good"]).Body.String(); !strings.Contains(body, "from a promotion: ") {
		t.Errorf("nothing says that a promotion asked for the run:\n%s", body)
	}
}
