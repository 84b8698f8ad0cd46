package console

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// A file on a machine is not as intended, and its handler reports only the hash of what it found. The list of drift and
// the page of the file show the content that is wanted, and say that nothing else is known of what was found; a hash
// that the server has no content of is shown as it is.
func TestDriftByHashShowsTheContentWanted(t *testing.T) {
	t.Parallel()
	b := newBakery(t)
	e, err := b.Store.Environment(t.Context(), b.env)
	must(t, err)
	b.deploy(lemon)
	wanted, err := b.Store.PutFile(t.Context(), []byte("lemon cake\nplum <cake>\n"), e.ProjectID)
	must(t, err)
	found, lost := strings.Repeat("ab", 20), strings.Repeat("cd", 20)
	at := b.Now()
	report := map[string]intent.AttributeChange{
		"hash": {Current: found, Desired: wanted}, "other": {Current: found, Desired: lost},
	}
	must(t, b.Store.FinishActions(t.Context(), b.env, []intent.FinishedAction{{
		Action: intent.Action{
			ID: uuid.New(), Environment: b.env, Kind: intent.ActionDeploy, Resource: b.id, Version: 1, Started: at,
			Finished: &at, Status: intent.StatusNonCompliant, Changes: report,
		},
		State: intent.ResourceState{
			ID: b.id, Compliance: intent.NonCompliant, LastRun: intent.RunSuccessful, Blocked: intent.NotBlocked,
			LastRunAt: &at, IntentHash: "1", Drifted: true,
		},
		Drift: &intent.DriftReport{Found: report, Open: true},
	}}))
	const note = "the content found has the hash abababababab; nothing else is known of it, because the handler " +
		"reports only its hash; this is the content wanted"
	file := strings.TrimPrefix(resourceURL(b.env, b.id), envURL(b.env))
	for path, times := range map[string]int{"/drift": 1, file: 2} {
		page := b.page(path)
		if n := strings.Count(page, note); n != times {
			t.Errorf("%s says %d times that the content is not known, not %d", path, n, times)
		}
		contains(t, page, "plum &lt;cake&gt;", lost)
	}
}
