package source

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// Variables of handlers are secrets under names that a process environment
// takes; those that would change how the executor runs are refused.
func TestNamesOfVariables(t *testing.T) {
	for name, want := range map[string]fault.Kind{
		"webhook": "", "variable:API_TOKEN": "", "variable:_x9": "",
		"api-token": fault.Invalid, "variable:": fault.Invalid, "variable:9x": fault.Invalid,
		"variable:A=B": fault.Invalid, "variable:A B": fault.Invalid,
		"variable:" + strings.Repeat("x", 200): fault.Invalid,
		"variable:ORDAIN_DATABASE_URL":         fault.Forbidden, "variable:PYTHONPATH": fault.Forbidden,
	} {
		if got := fault.KindOf(CheckSecret(name, "value")); got != want &&
			(want != "" || CheckSecret(name, "value") != nil) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if err := CheckSecret("variable:X", "a\x00b"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a zero byte: %v", err)
	}
}
