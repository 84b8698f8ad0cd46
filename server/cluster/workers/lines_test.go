package workers

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What a provisioner prints gets into the log with its level, and never too much of it.
func TestLines(t *testing.T) {
	var said bytes.Buffer
	at := now
	l := &lines{
		log: slog.New(slog.NewTextHandler(&said, nil)), now: func() time.Time { return at },
	}
	fmt.Fprint(l, `{"time":"x","level":"WARN","msg":"one","tasks":3,"err`)
	fmt.Fprint(l, "or\":\"broken\"}\npanic: two\n\n", strings.Repeat("x", 3*lineMax), "\n{\"level\":7}\nthe end")
	if l.Last() != "the end" {
		t.Errorf("the last line is %q", l.Last())
	}
	for _, want := range []string{
		`level=WARN msg="provisioner: one" error=broken tasks=3`, `level=INFO msg="provisioner: panic: two"`,
		`msg="provisioner: {\"level\":7}"`, `msg="provisioner: the end"`,
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the log has nothing of %s", want)
		}
	}
	if said.Len() > 2*lineMax {
		t.Errorf("the log has %d bytes", said.Len())
	}
	said.Reset()
	for range 10 * linesMax {
		fmt.Fprintln(l, "again")
	}
	at = at.Add(linesTime)
	fmt.Fprintln(l, "later")
	if n := strings.Count(said.String(), "\n"); n > linesMax+2 || !strings.Contains(said.String(), "were left out") ||
		!strings.Contains(said.String(), "later") {
		t.Errorf("%d lines:\n%.500s", n, said.String())
	}
}
