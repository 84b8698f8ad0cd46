package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/diag"
)

// A command line that is not understood ends with status 2 and a message or, with
// -o json, a report.
func TestCommandsThatAreNotUnderstood(t *testing.T) {
	for _, c := range []struct {
		args []string
		json bool
	}{
		{[]string{"complie"}, false},
		{[]string{"complie", "-o", "json"}, true},
		{[]string{"compile", "--no-such-flag", "--output=json"}, true},
		{[]string{"compile", "-o", "yaml"}, false},
		{[]string{"compile", "--resources-json", "resources.json"}, false},
		{[]string{"complie", "--", "-o", "json"}, false},
		{[]string{"environment", "halt"}, false},
		{[]string{"up", "--no-such-flag"}, false},
		{[]string{"project", "list", "--server", "nowhere"}, false},
		{[]string{"compile", "--compiler-option", "x"}, false},
	} {
		var stdout, stderr bytes.Buffer
		if status := Main(c.args, nil, &stdout, &stderr); status != 2 {
			t.Errorf("%q: status %d", c.args, status)
		}
		if !c.json {
			if stdout.Len() > 0 || !strings.Contains(stderr.String(), "Try 'ordain --help'") {
				t.Errorf("%q printed %q and %q", c.args, &stdout, &stderr)
			}
			continue
		}
		var report diag.Report
		if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || report.Success ||
			len(report.Diagnostics) != 1 ||
			report.Diagnostics[0].Code != "E0903" {
			t.Errorf("%q: %v in %s", c.args, err, &stdout)
		}
	}
}

// Commands on broken projects print their errors on standard error or, with -o json, a
// report with the code of each error on standard output.
func TestErrorsForPeopleAndPrograms(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"good/project.yml": "name: p\n", "good/main.cf": "x = 1\n", "good/broken.cf": "x = = 1\n", "file": "",
		"unreadable/project.yml": "name: [\n", "binary/project.yml": "\x00\xff", "folder/project.yml/x": "",
		"nomain/project.yml": "name: p\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	cases := map[string]string{ // the code by the arguments
		"compile --project good --no-std --model-json nowhere/x":      "E0902",
		"compile --project good --no-std --export --export-json good": "E0902",
		"compile --project good --no-std --main file/x":               "E0408",
		"compile --project good --no-std --cache-dir file":            "E0902",
		"compile --project good --no-std --main broken.cf":            "E0001",
		"check --project good --no-std --main broken.cf --no-plugins": "E0001",
		"model explain x --project good --no-std --main broken.cf":    "E0001",
		"model explain y --project good --no-std":                     "E0112",
		"model explain m::T[name=x --project good --no-std":           "E0112",
		"model explain m::T[a,name=x] --project good --no-std":        "E0112",
		"format nowhere":                    "E0902",
		"format file/below":                 "E0902",
		"format good/broken.cf":             "E0001",
		"format --check good/broken.cf":     "E0001",
		"format --diff good/broken.cf file": "E0001",
	}
	for project, code := range map[string]string{
		"nowhere": "E0407", "file": "E0407", "file/below": "E0407", "unreadable": "E0406", "binary": "E0409",
		"folder": "E0403", "nomain": "E0408",
	} {
		for _, command := range []string{"compile", "check --no-plugins", "model explain x"} {
			cases[command+" --no-std --project "+project] = code
		}
	}
	for line, code := range cases {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			var stdout, stderr bytes.Buffer
			if status := Main(args, nil, &stdout, &stderr); status != 1 || stdout.Len() > 0 || stderr.Len() == 0 {
				t.Errorf("for people: status %d, %q and %q", status, &stdout, &stderr)
			}
			stdout.Reset()
			status := Main(append(args, "-o", "json"), nil, &stdout, &stderr)
			var report diag.Report
			err := json.Unmarshal(stdout.Bytes(), &report)
			if err != nil || status != 1 || report.Success || len(report.Diagnostics) != 1 ||
				report.Diagnostics[0].Code != code ||
				report.Diagnostics[0].Message == "" {
				t.Errorf("for programs: status %d, want %s, %v in %s", status, code, err, &stdout)
			}
		})
	}
}

// With -o json, format reports which files it changed or would change.
func TestFormatReports(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args    []string
		success bool
	}{{[]string{"--check"}, false}, {nil, true}} {
		if err := os.WriteFile("main.cf", []byte("x=1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		status := Main(append([]string{"format", "-o", "json"}, c.args...), nil, &stdout, &stderr)
		var report diag.Report
		if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || report.Success != c.success ||
			(status == 0) != c.success ||
			!slices.Equal(report.Output, []string{"main.cf"}) ||
			len(report.Diagnostics) > 0 {
			t.Errorf("%q: status %d, %v in %s", c.args, status, err, &stdout)
		}
	}
	var stdout, stderr bytes.Buffer
	if status := Main([]string{"format", "-", "-o", "json"}, strings.NewReader("x=1"), &stdout, &stderr); status != 2 ||
		!strings.Contains(stdout.String(), "E0903") {
		t.Errorf("standard input: status %d, %s", status, &stdout)
	}
}
