// Package oracle asks the reference what it makes of a model: many at once, in
// one Python process that forks for each.
package oracle

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

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
)

//go:embed reference.py
var reference string

// Compile compiles the cases, each in a folder below dir, with the reference
// that the interpreter has. What does not finish is told on standard error and
// left out.
func Compile(ctx context.Context, python string, cases []parity.Case, dir string) (parity.Outcomes, error) {
	type line struct {
		Name     string          `json:"name"`
		Dir      string          `json:"dir,omitempty"`
		Std      bool            `json:"std"`
		Export   bool            `json:"export"`
		Partial  bool            `json:"partial"`
		Delete   []string        `json:"delete"`
		Env      []string        `json:"env"`
		Document json.RawMessage `json:"document,omitempty"`
	}
	var in bytes.Buffer
	dirs, named := map[string]string{}, map[string]parity.Case{}
	for i, c := range cases {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.RemoveAll(sub); err != nil { // of another case, whose modules this one must not find
			return nil, err
		}
		if err := c.Write(sub); err != nil {
			return nil, err
		}
		dirs[c.ID()], named[c.ID()] = sub, c
		if err := json.NewEncoder(&in).Encode(line{Name: c.ID(), Dir: sub, Std: c.Std, Export: c.Export, Partial: c.Partial, Delete: c.Delete, Env: c.Env}); err != nil {
			return nil, err
		}
	}
	command := exec.CommandContext(ctx, python, "-c", reference)
	command.Stdin, command.Stderr = &in, os.Stderr
	pipe, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	out := parity.Outcomes{}
	answers := bufio.NewScanner(pipe)
	answers.Buffer(nil, 1<<28)
	for answers.Scan() {
		var l line
		if err := json.Unmarshal(answers.Bytes(), &l); err != nil {
			return nil, err
		}
		if len(l.Document) == 0 || string(l.Document) == "null" {
			fmt.Fprintf(os.Stderr, "oracle: the reference did not finish %s: it is left out\n", l.Name)
			continue
		}
		if out[l.Name], err = parity.Normalise(l.Document, append(compiler.PackagesOf(python), dirs[l.Name])...); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		if out[l.Name].Files, err = named[l.Name].Written(dirs[l.Name]); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	if err := answers.Err(); err != nil {
		return nil, err
	}
	return out, command.Wait()
}
