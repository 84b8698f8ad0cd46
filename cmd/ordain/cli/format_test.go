package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ordain runs a command and returns its exit status and output.
func ordain(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Main(args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

// A team formats its project. At first --check fails in the pipeline and --diff shows
// why; format fixes it, and then --check succeeds. Hidden files, files that are not
// models, and files that do not parse stay as they are.
func TestFormatAProject(t *testing.T) {
	const ugly, neat, wrong = "x=1\n", "x = 1\n", "entity :\n"
	dir := project(t, map[string]string{
		"main.cf": ugly, "libs/a/model/_init.cf": ugly, "libs/a/model/ok.cf": neat, "bad.cf": wrong,
		".env/b.cf": ugly, "notes.txt": ugly,
	})
	main := filepath.Join(dir, "main.cf")
	if err := os.Chmod(main, 0o640); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	status, stdout, stderr := ordain("", "format", "--check", dir)
	wantList := filepath.Join(dir, "libs/a/model/_init.cf") + "\n" + main + "\n"
	if status != 1 || stdout != wantList || !strings.Contains(stderr, "bad.cf") ||
		!strings.Contains(stderr, "entity :") {
		t.Errorf("check: status %d, %q, %s", status, stdout, stderr)
	}
	status, stdout, _ = ordain("", "format", "--diff", main)
	if status != 1 || !strings.Contains(stdout, "-x=1\n+x = 1\n") || read("main.cf") != ugly {
		t.Errorf("diff: status %d, %s", status, stdout)
	}
	status, stdout, _ = ordain("", "format", dir)
	if status != 1 || stdout != wantList { // bad.cf is still bad
		t.Errorf("format: status %d, %q", status, stdout)
	}
	for name, want := range map[string]string{
		"main.cf": neat, "libs/a/model/_init.cf": neat, "libs/a/model/ok.cf": neat, "bad.cf": wrong,
		".env/b.cf": ugly, "notes.txt": ugly,
	} {
		if got := read(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if info, err := os.Stat(main); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode of main.cf is %v, %v", info.Mode(), err)
	}
	if status, stdout, stderr = ordain("", "format", "--check", main); status != 0 || stdout+stderr != "" {
		t.Errorf("check of what is formatted: status %d, %s%s", status, stdout, stderr)
	}
}

func TestFormatStandardInput(t *testing.T) {
	if status, stdout, stderr := ordain("x=1", "format", "-"); status != 0 || stdout != "x = 1\n" {
		t.Errorf("status %d, %q, %s", status, stdout, stderr)
	}
	if status, stdout, stderr := ordain("x=", "format", "-"); status != 1 || stdout != "" ||
		!strings.Contains(stderr, "<stdin>") {
		t.Errorf("status %d, %q, %s", status, stdout, stderr)
	}
	if status, _, _ := ordain("x=1\n", "format", "-", "--check"); status != 1 {
		t.Errorf("check: status %d", status)
	}
	if status, _, stderr := ordain("", "format", "nowhere.cf"); status != 1 || !strings.Contains(stderr, "nowhere.cf") {
		t.Errorf("status %d, %s", status, stderr)
	}
}
