package cli

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/api/apitest"
)

// A compile that was cancelled for a newer commit names the compile of that.
func TestACancelledCompileNamesTheNewer(t *testing.T) {
	r := apitest.NewRich(time.Now())
	rest, err := api.New(api.Config{Control: r, Store: r.Record(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest)
	defer server.Close()
	shown := func() string {
		t.Helper()
		status, out, errs := ordain(
			"",
			"compile-report",
			"show",
			r.Production.Name,
			r.Running.String(),
			"--server",
			server.URL,
		)
		if status != 0 {
			t.Fatal(errs)
		}
		return out
	}
	if out := shown(); strings.Contains(out, "newer") {
		t.Errorf("one that runs:\n%s", out)
	}
	r.Do(func() {
		for i := range r.Production.Runs {
			if run := &r.Production.Runs[i]; run.ID == r.Running {
				run.Completed, run.Success, run.SupersededBy = new(time.Time), new(false), &r.Good
			}
		}
	})
	if out := shown(); !strings.HasPrefix(out, "Cancelled for a newer commit: "+r.Good.String()+"\n") {
		t.Errorf("one that was cancelled:\n%s", out)
	}
}
