package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/diag"
)

// One file is half written, another has a typing error, and a third uses a type that
// does not exist. One `ordain check` reports all three, and no errors that only follow
// from them.
func TestCheckReportsErrorsOfAllFiles(t *testing.T) {
	dir := project(t, map[string]string{
		"main.cf": "import a\nimport b\nimport nowhere\nx = a::Thing()\ny = nowhere::f()\nentity " +
			"Half:\n    string\n",
		"libs/a/module.yml":     "name: a\nversion: 1.0\nlicense: none\n",
		"libs/a/model/_init.cf": "entity Thing:\n    string name = \n    int size\nend\n",
		"libs/b/module.yml":     "name: b\nversion: 1.0\nlicense: none\n",
		"libs/b/model/_init.cf": "import a\nimport c\nentity Other extends a::Thing:\n    strng " +
			"name\nend\nOther(nothing=1)\n",
		"libs/c/module.yml":     "name: c\nversion: 1.0\nlicense: none\n",
		"libs/c/model/_init.cf": "import d\nx = y z = = 3\n",
	})
	status, stdout, _ := ordain("", "check", "--project", dir, "--no-std", "-o", "json")
	if status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	var report diag.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	var got []string
	for _, d := range report.Diagnostics {
		if d.Severity == diag.Error {
			got = append(got, fmt.Sprintf("%s %s:%d", d.Code, d.Location.File, d.Location.Line))
		}
	}
	want := "E0001 main.cf:9,E0001 libs/c/model/_init.cf:2,E0001 libs/a/model/_init.cf:3,E0101 libs/b/model/_init.cf:4"
	if strings.Join(got, ",") != want {
		t.Errorf("got: %s\nwant: %s", strings.Join(got, ","), want)
	}
}

// A model that fails only when it runs has no errors for check, which does not run it.
func TestCheckDoesNotRunTheModel(t *testing.T) {
	dir := project(t, map[string]string{"main.cf": "x = 1\nx = 2\ny = int(\"no number\")\n"})
	status, stdout, stderr := ordain("", "check", "--project", dir, "--no-std")
	if status != 0 || stdout != "no errors\n" || stderr != "" {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	if status, _, stderr := ordain("", "compile", "--project", dir, "--no-std"); status != 1 ||
		!strings.Contains(stderr, "E0202") {
		t.Errorf("compile: status %d, %q", status, stderr)
	}
}

// The report of a compile has all errors with code and place, and nothing else is on
// standard output.
func TestCompileReportsAsJSON(t *testing.T) {
	dir := project(t, map[string]string{"main.cf": "x = 1\nx = 2\ny = int(\"no number\")\n"})
	status, stdout, _ := ordain("", "compile", "--project", dir, "--no-std", "-o", "json")
	var report diag.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if status != 1 || report.Success || report.Version != diag.ReportVersion || len(report.Diagnostics) != 2 {
		t.Errorf("status %d, report %+v", status, report)
	}
	if status, _, stderr := ordain("", "compile", "--project", dir, "-o", "xml"); status != 2 ||
		!strings.Contains(stderr, "xml") {
		t.Errorf("another format: status %d, %q", status, stderr)
	}
	good := project(t, map[string]string{"main.cf": "x = 1\n"})
	status, stdout, _ = ordain("", "compile", "--project", good, "--no-std", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != 0 || !report.Success {
		t.Errorf("status %d, %v, %s", status, err, stdout)
	}
}

// A variable that nothing assigns is an error where it is certainly read, and a warning
// where that depends. An attribute of an entity's subclass counts as defined.
func TestCheckReportsUndefinedVariables(t *testing.T) {
	dir := project(t, map[string]string{"main.cf": `port = 80
x = prt
if x == 80:
    y = pxrt
end
entity A:
    string name
end
entity B extends A:
    string more
end
implementation a for A:
    n = nmae
    m = more
    self.name = "a"
end
implement A using a
z = q is defined ? q : 1
`})
	status, stdout, _ := ordain("", "check", "--project", dir, "--no-std", "-o", "json")
	var report diag.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	var got []string
	for _, d := range report.Diagnostics {
		got = append(got, fmt.Sprintf("%s %d", d.Severity, d.Location.Line))
	}
	slices.Sort(got)
	want := "error 2,warning 13,warning 18,warning 18,warning 4"
	if status != 1 || strings.Join(got, ",") != want {
		t.Errorf("status %d, got: %s\nwant: %s", status, strings.Join(got, ","), want)
	}
}
