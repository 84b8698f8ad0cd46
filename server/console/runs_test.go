package console

import (
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/api/apitest"
)

// A run that was cancelled for a newer commit leads to the run of that.
func TestACancelledRunLeadsToTheNewer(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	page := "/e/" + r.Production.ID.String() + "/runs/"
	if body := get(t, h, page+r.Running.String()).Body.String(); strings.Contains(body, "newer commit") {
		t.Errorf("it runs:\n%s", body)
	}
	r.Do(func() {
		run := runIn(r)
		run.Completed, run.Success, run.SupersededBy = new(time.Time), new(false), &r.Good
	})
	body := get(t, h, page+r.Running.String()).Body.String()
	if !strings.Contains(body, `<a href="`+page+r.Good.String()+`">the run of a newer commit</a>`) {
		t.Errorf("no way to the newer:\n%s", body)
	}
}
