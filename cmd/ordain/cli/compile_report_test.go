package cli

import (
	"net/http/httptest"
	"strings"
	"testing"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/servertest"
)

// A compile that was cancelled for a newer commit names that commit's compile.
func TestACancelledCompileNamesTheNewerOne(t *testing.T) {
	r := servertest.NewRich(t)
	rest, err := api.New(api.Config{Control: r.Control, Store: r.Store, Logger: r.Log, Auth: r.API(), People: r.People,
		Tokens: r.Tokens})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest)
	defer server.Close()
	show := func() string {
		t.Helper()
		status, out, errs := ordain(
			"", "compile-report", "show", r.Production.Name, r.Running.String(), "--server", server.URL)
		if status != 0 {
			t.Fatal(errs)
		}
		return out
	}
	if out := show(); strings.Contains(out, "newer") {
		t.Errorf("one that runs:\n%s", out)
	}
	end := intent.CompileEnd{SupersededBy: &r.Good, At: r.Now()}
	if err := r.Store.FinishCompile(t.Context(), r.Running, end); err != nil {
		t.Fatal(err)
	}
	if out := show(); !strings.HasPrefix(out, "Cancelled for a newer commit: "+r.Good.String()+"\n") {
		t.Errorf("one that was cancelled:\n%s", out)
	}
}
