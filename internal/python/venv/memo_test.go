package venv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// counted is a wrapper around an interpreter that counts how often it runs.
type counted struct{ dir, path string }

func newCounted(t *testing.T) counted {
	t.Helper()
	real, err := Find(t.Context(), "") // its path is the interpreter itself, not a wrapper of pyenv
	if err != nil {
		tool.Missing(t, "there is no usable Python on this machine: %v", err)
	}
	c := counted{dir: t.TempDir()}
	c.path = filepath.Join(c.dir, "python3")
	c.write(t, real.Path)
	return c
}

func (c counted) write(t *testing.T, real string) {
	t.Helper()
	text := "#!/bin/sh\necho run >> '" + c.dir + "/count'\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(c.path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (c counted) runs() int {
	text, _ := os.ReadFile(filepath.Join(c.dir, "count"))
	return strings.Count(string(text), "run")
}

// An interpreter is asked only once what it is, until the wrapper that runs it changes.
func TestInterpretersAreRemembered(t *testing.T) {
	c := newCounted(t)
	memo := Memo{Dir: t.TempDir()}
	for range 3 {
		i, err := memo.Find(t.Context(), c.path)
		if err != nil {
			t.Fatal(err)
		}
		if i.Path == c.path || i.Minor == "" {
			t.Errorf("found %+v", i)
		}
	}
	if n := c.runs(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	c.write(t, "  /usr/bin/python3")
	if _, err := memo.Find(t.Context(), c.path); err != nil || c.runs() != 2 {
		t.Errorf("after a change: %v, asked %d times", err, c.runs())
	}
	files, _ := filepath.Glob(filepath.Join(memo.Dir, "*"))
	for _, file := range files {
		if err := os.WriteFile(file, []byte(`{"interpreter":`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := memo.Find(t.Context(), c.path); err != nil || c.runs() != 3 {
		t.Errorf("after damage: %v, asked %d times", err, c.runs())
	}
}

func TestConditionsOfRequirements(t *testing.T) {
	i := Interpreter{Version: "3.12.1", Minor: "3.12"}
	for marker, want := range map[string]bool{
		`python_version < "3.11"`:                                   false,
		`python_version >= '3.9' and sys_platform != "win32"`:       true,
		`sys_platform == "win32" or python_full_version > "3.12"`:   true,
		`(os_name == "nt" or extra == 'test') and os_name=="posix"`: false,
		`platform_python_implementation not in "PyPy"`:              true,
		`python_version < "3.x"`:                                    true, // unreadable conditions apply
		`something_new == "1"`:                                      true,
		`python_version <`:                                          true,
		`"3.11" > python_version`:                                   false,
	} {
		if got := Applies(marker, i); got != want {
			t.Errorf("%s: %v, want %v", marker, got, want)
		}
	}
}

// Packages in the folder, and requirements whose condition is false, are not lacking.
func TestWhatIsThereIsNotLacking(t *testing.T) {
	site := t.TempDir()
	add := func(name, metadata string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(site, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(site, name, "METADATA"), []byte(metadata), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range coreRequires {
		add(strings.ReplaceAll(distribution(r), "-", "_")+"-9.dist-info", "Name: x\n")
	}
	add(
		"mine-1.dist-info",
		"Name: mine\nRequires-Dist: Other_Thing>1\n"+
			"Requires-Dist: tomli; python_version < \"3.11\"\nRequires-Dist: inmanta-core\n",
	)
	i := Interpreter{Version: "3.12.1", Minor: "3.12"}
	if got := Lacking([]string{site}, i); len(got) != 1 || got[0] != "Other_Thing>1" {
		t.Errorf("lacking %q", got)
	}
	add("other_thing-2.dist-info", "Name: other-thing\n")
	if got := Lacking([]string{site}, i); len(got) != 0 {
		t.Errorf("lacking %q", got)
	}
}
