package parity

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"ordain.dev/ordain/compiler"
)

//go:embed reference.py
var referenceProgram string

// referenceCase is a line of the reference's input, and of its output with a document.
type referenceCase struct {
	Name     string          `json:"name"`
	Dir      string          `json:"dir,omitempty"`
	Std      bool            `json:"std"`
	Export   bool            `json:"export"`
	Partial  bool            `json:"partial"`
	Delete   []string        `json:"delete"`
	Env      []string        `json:"env"`
	Document json.RawMessage `json:"document,omitempty"`
}

// CompileWithReference compiles the cases, each in a folder of its own below dir, with the
// inmanta-core of the given interpreter. One Python process does all of them and forks for
// each. A case that does not finish is reported on standard error and left out.
func CompileWithReference(ctx context.Context, python string, cases []Case, dir string) (Outcomes, error) {
	var in bytes.Buffer
	byID, folder := map[string]Case{}, map[string]string{}
	for i, c := range cases {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.RemoveAll(sub); err != nil { // an earlier batch may have left modules here
			return nil, err
		}
		if err := c.Write(sub); err != nil {
			return nil, err
		}
		byID[c.ID()], folder[c.ID()] = c, sub
		err := json.NewEncoder(&in).Encode(referenceCase{
			Name: c.ID(), Dir: sub, Std: c.Std, Export: c.Export, Partial: c.Partial, Delete: c.Delete, Env: c.Env,
		})
		if err != nil {
			return nil, err
		}
	}
	command := exec.CommandContext(ctx, python, "-c", referenceProgram)
	command.Stdin, command.Stderr = &in, os.Stderr
	pipe, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	packages := compiler.PackagesOf(python)
	out := Outcomes{}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<28)
	for lines.Scan() {
		var answer referenceCase
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			return nil, err
		}
		id := answer.Name
		if len(answer.Document) == 0 || string(answer.Document) == "null" {
			fmt.Fprintf(os.Stderr, "parity: the reference did not finish %s: it is left out\n", id)
			continue
		}
		document, err := Normalise(answer.Document, slices.Concat(packages, []string{folder[id]})...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		if document.Files, err = byID[id].Written(folder[id]); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		out[id] = document
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return out, command.Wait()
}
