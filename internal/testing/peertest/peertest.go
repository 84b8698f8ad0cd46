// Package peertest holds what our code makes of texts against what a Python
// program makes of them: a table that Python once wrote, for machines without
// that Python, and random texts where it is there.
package peertest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// Python is the interpreter that ORDAIN_REFERENCE_PYTHON names or else the one on
// the path. The test is skipped where it does not run the condition.
func Python(t *testing.T, condition string) string {
	t.Helper()
	python := os.Getenv("ORDAIN_REFERENCE_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", condition).Run(); err != nil {
		t.Skipf("%s does not do: %s", python, condition)
	}
	return python
}

// Ask gives a program texts, as a list in JSON on its standard input, and reads
// what it answers: a list too.
func Ask[T any](t *testing.T, python, program string, texts []string) []T {
	t.Helper()
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-W", "ignore", "-c", program)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers []T
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

// Table reads the answers that stand in a file. With ORDAIN_UPDATE set, ask is
// asked for them first, about the same texts, and the file is written anew.
func Table[T any](t *testing.T, path string, text func(T) string, ask func(texts []string) []T) []T {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table []T
	if err := json.Unmarshal(file, &table); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ORDAIN_UPDATE") == "" {
		return table
	}
	texts := make([]string, len(table))
	for i, answer := range table {
		texts[i] = text(answer)
	}
	table = ask(texts)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(table); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return table
}
