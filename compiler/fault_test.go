package compiler_test

import (
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
)

// A panic in the compiler becomes a diagnostic that asks for a report.
func TestPanicBecomesADiagnostic(t *testing.T) {
	out := compiler.RunFailing(t.TempDir(), func() { panic("the sky fell") })
	if out.Document.Success || len(out.Document.Diagnostics) != 1 {
		t.Fatalf("a compiler that fails gave %+v", out.Document)
	}
	if !strings.Contains(out.Text, "the sky fell") || !strings.Contains(out.Text, "please report it") {
		t.Errorf("the text is %q", out.Text)
	}
	if d := out.ModelDocument(); d.Success || d.Error == nil || !strings.Contains(d.Error.Trace, "fault_test.go") {
		t.Errorf("the document does not hold the stack: %+v", d.Error)
	}
}
