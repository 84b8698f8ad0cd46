package module

import (
	_ "embed"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/peertest"
)

// readCfg is what the reference makes of a setup.cfg.
type readCfg struct {
	Text            string
	Error           string   `json:",omitempty"`
	Name, Version   string   `json:",omitempty"`
	InstallRequires []string `json:",omitempty"`
	Deprecated      bool     `json:",omitempty"`
}

func compareCfg(t *testing.T, dir string, want readCfg) {
	t.Helper()
	path := filepath.Join(dir, "setup.cfg")
	if err := os.WriteFile(path, []byte(want.Text), 0o644); err != nil {
		t.Fatal(err)
	}
	got := readCfg{Text: want.Text}
	c, err := readSetupCfg(path)
	if e := (*Error)(nil); errors.As(err, &e) {
		got.Error = strings.ReplaceAll(e.Message, path, "setup.cfg")
	} else if err != nil {
		t.Fatal(err)
	} else {
		got = readCfg{Text: want.Text, Name: c.Name, Version: c.Version, InstallRequires: c.InstallRequires, Deprecated: c.Deprecated}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v\nwant %#v", got, want)
	}
}

// The table was written by the reference: ORDAIN_UPDATE=1 writes it anew.
func TestSetupCfg(t *testing.T) {
	dir := t.TempDir()
	ask := func(texts []string) []readCfg { return reference(t, texts) }
	for _, want := range peertest.Table(t, "testdata/setup_cfg.json", func(r readCfg) string { return r.Text }, ask) {
		compareCfg(t, dir, want)
	}
}

// Random files are read as the reference reads them.
func TestSetupCfgAtRandom(t *testing.T) {
	lines := []string{
		"name = inmanta-module-a", "name = inmanta-module-", "name = a_b", "name: inmanta-module-a-b", "version = 1.0", "version = 01.0.0", "version = 1.0.post1", "version = v2", "version = x", "version =",
		"version = %(base)s", "base = 3!1", "license = ASL 2.0", "license = ü 🙂 'q\" and more of it, so that it is long", "license", "deprecated = Yes", "deprecated = no", "deprecated = 2", "freeze_operator = >=", "freeze_operator = <",
		"freeze_recursive = T", "four_digit_version = é", "description = 100%", "description = %%", "version_tag = x", "install_requires = x", "other =\n  1\n\n  2", "  set in",
	}
	tails := []string{
		"",
		"[options]\ninstall_requires =\n  inmanta-module-std~=8.0\n\n  # c\n  b ; python_version > '3'\n",
		"[egg_info]\ntag_build = .dev3\n",
		"[egg_info]\ntag_build = rc1\n",
		"[egg_info]\ntag_build = x y\n",
		"[DEFAULT]\nlicense = d\n",
		"[options]\ninstall_requires = %(x\n",
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	texts := make([]string, 1000)
	for i := range texts {
		var b strings.Builder
		b.WriteString("[metadata]\n")
		for _, line := range []string{"name = inmanta-module-a\n", "version = 1.0\n", "license = x\n"} {
			if rnd.IntN(4) > 0 {
				b.WriteString(line)
			}
		}
		for range rnd.IntN(4) {
			b.WriteString(lines[rnd.IntN(len(lines))] + "\n")
		}
		b.WriteString(tails[rnd.IntN(len(tails))])
		texts[i] = b.String()
	}
	dir := t.TempDir()
	for _, want := range reference(t, texts) {
		compareCfg(t, dir, want)
	}
}

//go:embed testdata/setup_cfg.py
var script string

// reference asks the reference.
func reference(t *testing.T, texts []string) []readCfg {
	t.Helper()
	return peertest.Ask[readCfg](t, peertest.Python(t, "import inmanta.module"), script, texts)
}
