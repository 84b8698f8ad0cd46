package compiler_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
)

const (
	corpus    = "testdata/parity"
	published = "testdata/published"
)

// TestParity compiles the models of the corpus and compares each with the outcome that was
// recorded of the reference, words of messages included. testdata/parity/known.txt lists the
// cases that are known to differ, each with its verdict; a case that is better now has to leave
// that list. Where a model has plug-ins, words may differ: some are those of the Python version.
//
// TestParityWithStd has the cases that need module std.
//
// Cases with Python start an interpreter each, so that the test takes one in eighty of them. ORDAIN_MATRIX=ci takes
// one in twelve, others in each turn of CI, and ORDAIN_MATRIX=whole takes all.
func TestParity(t *testing.T) {
	python := plugintest.Python(t)
	cases := loadCases(t, corpus, "eval/testdata")
	cases = slices.DeleteFunc(cases, func(c parity.Case) bool {
		return c.NeedsStd() || c.HasPython() && testing.Short()
	})
	compareAll(t, corpus, cases, compiler.Options{CacheDir: t.TempDir(), Python: python})
}

// pythonMinor returns the second part of the version of a Python 3; 0 if there is none.
func pythonMinor(python string) int {
	out, err := exec.Command(python, "-c", "import sys; print(sys.version_info.minor)").Output()
	if err != nil {
		return 0
	}
	minor, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return minor
}

// loadCases loads the cases of a corpus that are compiled in this run.
func loadCases(t *testing.T, dir string, stories ...string) []parity.Case {
	t.Helper()
	cases, err := parity.Load(dir, stories...)
	if err != nil {
		t.Fatal(err)
	}
	ci := os.Getenv("ORDAIN_MATRIX") == "ci"
	return slices.DeleteFunc(cases, func(c parity.Case) bool {
		switch {
		case wholeMatrix():
			return false
		case c.HasPython() && ci:
			return !tool.Sample(c.ID(), 12)
		case c.HasPython():
			return !tool.Sample(c.ID(), 80) // most of the time goes to Python
		case ci:
			return false
		case racedetector.On:
			return !tool.Sample(c.ID(), 8)
		}
		return !tool.Sample(c.ID(), 6)
	})
}

// wholeMatrix reports whether this run takes all cases.
func wholeMatrix() bool { return os.Getenv("ORDAIN_MATRIX") == "whole" }

// compareAll compiles cases of a corpus and compares them with their recorded outcomes.
func compareAll(t *testing.T, dir string, cases []parity.Case, o compiler.Options) {
	t.Helper()
	outcomes, err := parity.LoadOutcomes(filepath.Join(dir, "outcomes"))
	if err != nil {
		t.Fatal(err)
	}
	minor := pythonMinor(o.Python)
	cases = slices.DeleteFunc(cases, func(c parity.Case) bool { return c.PythonMinor > minor })
	known := readKnown(t, filepath.Join(dir, "known.txt"))
	for id := range known {
		if outcomes[id] == nil && !strings.HasSuffix(id, "/*") {
			t.Errorf("known.txt lists %s, which is not a case", id)
		}
	}
	areas := map[string][]parity.Case{}
	for _, c := range cases {
		areas[c.Area] = append(areas[c.Area], c)
	}
	for area, cases := range areas {
		for some := range slices.Chunk(cases, 20) {
			t.Run(area, func(t *testing.T) {
				t.Parallel()
				for _, c := range some {
					compare(t, c, outcomes[c.ID()], known, o)
				}
			})
		}
	}
}

// compare compiles a case and compares it with its recorded outcome.
func compare(t *testing.T, c parity.Case, want *parity.Document, known map[string]parity.Verdict, o compiler.Options) {
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
	switch {
	case !listed && verdict == known[c.Area+"/*"]:
	case listed && verdict == allowed:
	case listed:
		t.Errorf("%s is known as %q and now is %q: %s", c.ID(), allowed, verdict, why)
	case verdict == parity.Message && c.HasPython(): // some words are those of the Python version
	case verdict != parity.Same:
		t.Errorf("%s: %s\n%s", c.ID(), verdict, why)
	}
}

// readKnown reads the list of cases that are known to differ, with their verdicts. The name area/*
// allows a verdict for all cases of an area.
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
