package compiler_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/internal/testing/racedetector"
)

// Every model of the corpus comes out as the reference's recorded outcome says,
// words of messages included, but for what testdata/parity/known.txt names with its
// verdict; where a model has plug-ins, other words will do. A case named there that is better now has to leave. Every
// fifth case is compiled with the race detector, all are without it.
// ORDAIN_PARITY=wide takes those of archives with the option wide too.
func TestParity(t *testing.T) {
	cases, err := parity.Load("testdata/parity", "eval/testdata")
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := parity.LoadOutcomes("testdata/parity/outcomes")
	if err != nil {
		t.Fatal(err)
	}
	known := readKnown(t, filepath.Join("testdata", "parity", "known.txt"))
	found, noPython := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	o := compiler.Options{CacheDir: t.TempDir(), Python: strings.TrimSpace(string(found))}
	cases = slices.DeleteFunc(cases, func(c parity.Case) bool {
		return c.Wide && !wide() || c.Std ||
			c.HasPython() &&
				(noPython != nil || testing.Short()) // std has packages of its own: TestParityWithStd compares those
	})
	holdAll(t, cases, outcomes, known, o)
}

// wide tells whether cases that are many of a kind are wanted too.
func wide() bool { return os.Getenv("ORDAIN_PARITY") == "wide" }

func readKnown(t *testing.T, path string) map[string]parity.Verdict {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]parity.Verdict{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 || !slices.Contains(parity.Verdicts, parity.Verdict(fields[1])) {
			t.Fatalf("%s: %q is not `case verdict`", path, line)
		}
		known[fields[0]] = parity.Verdict(fields[1])
	}
	return known
}

// A fault of the compiler itself is told like other errors, and asks for a report.
func TestAFaultOfTheCompilerIsTold(t *testing.T) {
	out := compiler.RunFailing(t.TempDir(), func() { panic("the sky fell") })
	if out.Document.Success || len(out.Document.Diagnostics) != 1 {
		t.Fatalf("a compiler that fails gave %+v", out.Document)
	}
	if !strings.Contains(out.Text, "the sky fell") || !strings.Contains(out.Text, "please report it") {
		t.Errorf("the text is %q", out.Text)
	}
	if d := out.ModelDocument(); d.Success || d.Error == nil || !strings.Contains(d.Error.Trace, "parity_test.go") {
		t.Errorf("the document does not hold the stack: %+v", d.Error)
	}
}

// holdAll compiles cases and holds them against their recorded outcomes, some at
// a time. With the race detector it takes every fifth.
func holdAll(
	t *testing.T,
	cases []parity.Case,
	outcomes parity.Outcomes,
	known map[string]parity.Verdict,
	o compiler.Options,
) {
	areas := map[string][]parity.Case{}
	for n, c := range cases {
		if !racedetector.On || n%5 == 0 {
			areas[c.Area] = append(areas[c.Area], c)
		}
	}
	for area, cases := range areas {
		for some := range slices.Chunk(cases, 20) {
			t.Run(area, func(t *testing.T) {
				t.Parallel()
				for _, c := range some {
					hold(t, c, outcomes[c.ID()], known, o)
				}
			})
		}
	}
}

// hold compiles a case and holds it against its recorded outcome.
func hold(t *testing.T, c parity.Case, want *parity.Document, known map[string]parity.Verdict, o compiler.Options) {
	t.Helper()
	if want == nil {
		t.Errorf("%s has no recorded outcome: run make parity", c.ID())
		return
	}
	got, err := parity.Compile(context.Background(), c, t.TempDir(), o)
	if err != nil {
		t.Fatalf("%s: %v", c.ID(), err)
	}
	verdict, why := parity.Compare(want, got)
	allowed, listed := known[c.ID()]
	if all := known[c.Area+"/*"]; !listed && verdict == all { // one line for all cases of the area that differ so
		return
	}
	switch {
	case listed && verdict == allowed:
	case listed:
		t.Errorf("%s is known as %q and now is %q: %s", c.ID(), allowed, verdict, why)
	case verdict == parity.Message && c.HasPython(): // the version of Python has a say in it
	case verdict != parity.Same:
		t.Errorf("%s: %s\n%s", c.ID(), verdict, why)
	}
}
