package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/diag"
)

// A command line that is not understood ends with status 2: in words for
// people, with a report for programs that asked for one.
func TestCommandsThatAreNotUnderstood(t *testing.T) {
	for _, c := range []struct {
		args []string
		json bool
	}{
		{[]string{"complie"}, false},
		{[]string{"complie", "-o", "json"}, true},
		{[]string{"compile", "--no-such-flag", "--output=json"}, true},
		{[]string{"compile", "-o", "yaml"}, false},
		{[]string{"complie", "--", "-o", "json"}, false},
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
		if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || report.Success || len(report.Diagnostics) != 1 || report.Diagnostics[0].Code != "E0903" {
			t.Errorf("%q: %v in %s", c.args, err, &stdout)
		}
	}
}
