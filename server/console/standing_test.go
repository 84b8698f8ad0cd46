package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A run that waits or runs can be cancelled on its page, with a name and a reason, and then says who did it.
func TestARunIsCancelledOnItsPage(t *testing.T) {
	r, h := rich(t)
	page := runURL(r.Production.ID, r.Running)
	if body := get(t, h, page).Body.String(); !strings.Contains(body, "Cancel the run") ||
		!strings.Contains(body, `id="crumb"`) {
		t.Errorf("the page of a run that is under way:\n%s", body)
	}
	w := post(h, page+"/cancel", url.Values{"by": {"Ada"}, "reason": {"it hangs"}})
	if w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	body := get(t, h, page).Body.String()
	if !strings.Contains(body, "being cancelled") || !strings.Contains(body, "by Ada") ||
		!strings.Contains(body, "it hangs") || strings.Contains(body, "Cancel the run") {
		t.Errorf("after that:\n%s", body)
	}
}
