package executor

import (
	"os"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// A new virtual environment starts with the bytecode of another one, for the
// packages whose files both share.
func TestNewVenvSharesBytecode(t *testing.T) {
	b := newBench(t, nil)
	blue := b.published("", []string{"markupsafe==3.0.2", "jinja2==3.1.4"}) // skips without a package index
	source := b.module("lab", lab+"\nimport jinja2.sandbox, logging\n").Sources
	blue.Sources = source
	first := b.Run(t.Context(), task(blue, "host", "one", nil))
	expect(t, first, intent.StatusDeployed)

	for _, c := range []struct {
		story        string
		requirements []string
		shared       bool
	}{
		{
			"the same packages and one more",
			[]string{"markupsafe==3.0.2", "jinja2==3.1.4", "typing-extensions==4.12.2"},
			true,
		},
		{"another version", []string{"markupsafe==3.0.2", "jinja2==3.1.3"}, false},
	} {
		other := blue
		other.Requirements = c.requirements
		expect(t, b.Run(t.Context(), task(other, "host", "one", nil)), intent.StatusDeployed)
		if c.shared &&
			!sameFile(t, installed(t, b, blue, "jinja2/sandbox.py"), installed(t, b, other, "jinja2/sandbox.py")) {
			t.Skip("the installer copies here, and links nothing")
		}
		const compiled = "jinja2/__pycache__/sandbox.*.pyc"
		theirs, ours := installed(t, b, blue, compiled), installed(t, b, other, compiled)
		if same := sameFile(t, theirs, ours); same != c.shared {
			t.Errorf("%s: %s and %s are the same file: %t", c.story, theirs, ours, same)
		}
	}
}

// installed returns the path of a file in the virtual environment of a blueprint.
func installed(t *testing.T, b *bench, blue intent.Blueprint, pattern string) string {
	t.Helper()
	venv := b.paths.Environment(b.env).Venv(blue.VenvHash())
	found, err := filepath.Glob(filepath.Join(venv, "lib", "python*", "site-packages", pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s below %s: %v, %v", pattern, venv, found, err)
	}
	return found[0]
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	one, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(one, other)
}

// Bytecode is linked only beside the source that it was compiled from, and never
// replaces existing bytecode.
func TestLinkBytecode(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write := func(path, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"same", "differs", "gone", "there"} {
		write(filepath.Join(from, "p", name+".py"), name)
		write(filepath.Join(from, "p", "__pycache__", name+".cpython-312.pyc"), "compiled "+name)
	}
	write(filepath.Join(from, "p", "__pycache__", "same.cpython-312.pyc.12345"), "half") // being written
	write(filepath.Join(to, "p", "differs.py"), "differs")                               // equal, but another file
	write(filepath.Join(to, "p", "__pycache__", "there.cpython-312.pyc"), "own")
	for _, name := range []string{"same", "there"} {
		if err := os.Link(filepath.Join(from, "p", name+".py"), filepath.Join(to, "p", name+".py")); err != nil {
			t.Fatal(err)
		}
	}
	if n := linkBytecode(from, to); n != 1 {
		t.Errorf("%d links", n)
	}
	for name, want := range map[string]string{"same.cpython-312.pyc": "compiled same", "there.cpython-312.pyc": "own"} {
		if content, err := os.ReadFile(filepath.Join(to, "p", "__pycache__", name)); err != nil ||
			string(content) != want {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(to, "p", "__pycache__", "*")); len(found) != 2 {
		t.Errorf("found %v", found)
	}
	if n := linkBytecode(filepath.Join(from, "nothing"), to); n != 0 {
		t.Errorf("%d links out of nothing", n)
	}
}
