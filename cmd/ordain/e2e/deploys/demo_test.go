package deploys

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/cmd/ordain/demo"
	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/config"
)

// The demo that the README promises no longer works. The first push deploys
// everything, and the second only the page that changed. The timer repairs a damaged
// page. A broken model is reported with file, line and column and changes nothing.
func TestDemo(t *testing.T) {
	tool.Heavy(t, "plays the whole demonstration")
	t.Parallel()
	if testing.Short() {
		t.Skip("the whole demo")
	}
	dir, err := lab.WorldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o, err := lab.Options(dir)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := config.Load("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.IsolationFirstUser = plain.IsolationFirstUser // as for somebody who tries it
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var chapters []string
	var versions []int
	s, err := demo.Run(t.Context(), demo.Config{
		Dir: dir, Options: o, Program: []string{self}, Version: cli.Version, Out: &out,
		Chapter: func(e demo.Ending) {
			chapters, versions = append(chapters, e.Chapter), append(versions, e.Version)
			checkChapter(t, e)
		},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Cleanup(s.Stop)
	if got := strings.Join(chapters, " "); got != "push change damage break" {
		t.Errorf("the chapters are %s", got)
	}
	if len(versions) == 4 && (versions[0] != 1 || versions[1] != 2 || versions[3] != 2) {
		t.Errorf("the active versions after the chapters are %v", versions)
	}
	lab.Mentions(t, out.String(), s.URL(), "5 of 5 resources deployed", "1 of 5 resources deployed", "main.cf:", "^",
		"version 2 is still active", intent.StageClone, intent.StageCheckout, intent.StageVenv,
		intent.StageInstall, intent.StageCompile, intent.StageExport, intent.StageRelease)
}

func checkChapter(t *testing.T, e demo.Ending) {
	t.Helper()
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(e.Root, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	switch e.Chapter {
	case "push":
		lab.Mentions(t, page("bread.html"), "<h1>Bread</h1>", "The Corner Bakery")
		lab.Mentions(t, page("cakes.html"), "two days ahead")
		lab.Mentions(t, page("menu.txt"), "cakes.html\tCakes", "opening-hours.html")
		if len(e.Deployed) != 5 {
			t.Errorf("the first push deployed %d resources", len(e.Deployed))
		}
	case "change":
		if len(e.Deployed) != 1 || filepath.Base(e.Deployed[0].Resource.Value) != "cakes.html" ||
			e.Deployed[0].Change != intent.Updated {
			t.Errorf("the second push deployed %+v, want cakes.html alone", e.Deployed)
		}
		lab.Mentions(t, page("cakes.html"), "one day ahead")
	case "damage":
		if r := e.Deployed[0]; filepath.Base(r.Resource.Value) != "bread.html" || r.Change != intent.Updated ||
			len(r.Changes) == 0 {
			t.Errorf("the repair was %+v", r)
		}
		lab.Mentions(t, page("bread.html"), "<h1>Bread</h1>")
	case "break":
		if e.Compile.Success == nil || *e.Compile.Success || e.Compile.Version != nil {
			t.Errorf("the broken push led to %+v", e.Compile)
		}
		if len(e.Diags) == 0 || e.Diags[0].Location == nil || e.Diags[0].Location.Line != 17 ||
			e.Diags[0].Location.Column == 0 {
			t.Errorf("the diagnostics are %+v, want main.cf line 17 with a column", e.Diags)
		}
		lab.Mentions(t, page("bread.html"), "<h1>Bread</h1>")
	}
}
