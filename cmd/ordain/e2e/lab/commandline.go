package lab

import (
	"bytes"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/cli"
)

// Ordain runs a command against the server.
func (w *World) Ordain(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(append(args, "--server", w.Server.URL()), strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// Must runs a command like Ordain, and fails the test if the command fails.
func (w *World) Must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := w.Ordain(t, "", args...)
	if code != 0 {
		t.Fatalf("ordain %s ends with %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}
