// Package peertest compares how our code reads texts with how a Python program
// reads them. The program's answers are recorded in a file, so most tests need
// no Python; where ORDAIN_REFERENCE_PYTHON names an interpreter, tests also
// compare random texts and can record the file anew.
package peertest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// Python returns the interpreter that ORDAIN_REFERENCE_PYTHON names. It skips the
// test when none is named or when the named one fails to run condition, a Python
// statement such as an import. The python3 on PATH is never used: its libraries
// may have any version, and so word their answers in any way.
func Python(t *testing.T, condition string) string {
	t.Helper()
	python := os.Getenv("ORDAIN_REFERENCE_PYTHON")
	if python == "" {
		t.Skip("ORDAIN_REFERENCE_PYTHON names no interpreter to compare with")
	}
	if err := exec.Command(python, "-c", condition).Run(); err != nil {
		t.Skipf("%s fails to run: %s", python, condition)
	}
	return python
}

// Ask runs a Python program with texts on its standard input, a JSON list, and
// returns the JSON list that the program prints.
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

// Table returns the answers recorded in a file. With ORDAIN_UPDATE set, it first
// calls ask with the texts of these answers and records the new answers.
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
