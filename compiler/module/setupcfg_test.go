package module

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
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
	const path = "testdata/setup_cfg.json"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table []readCfg
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ORDAIN_UPDATE") != "" {
		var texts []string
		for _, r := range table {
			texts = append(texts, r.Text)
		}
		table = reference(t, texts)
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(table); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for _, want := range table {
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
	tails := []string{"", "[options]\ninstall_requires =\n  inmanta-module-std~=8.0\n\n  # c\n  b ; python_version > '3'\n", "[egg_info]\ntag_build = .dev3\n", "[egg_info]\ntag_build = rc1\n", "[egg_info]\ntag_build = x y\n", "[DEFAULT]\nlicense = d\n", "[options]\ninstall_requires = %(x\n"}
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

// reference asks the reference, of the interpreter that ORDAIN_REFERENCE_PYTHON
// names.
func reference(t *testing.T, texts []string) []readCfg {
	t.Helper()
	python := os.Getenv("ORDAIN_REFERENCE_PYTHON")
	if python == "" {
		t.Skip("ORDAIN_REFERENCE_PYTHON names no Python with the reference")
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-W", "ignore", "-c", script)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var table []readCfg
	if err := json.Unmarshal(out, &table); err != nil {
		t.Fatal(err)
	}
	return table
}
