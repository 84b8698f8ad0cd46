// Package yamltest makes texts of YAML, right and wrong ones, and asks PyYAML
// what it makes of them.
package yamltest

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"slices"
)

// Answer is what PyYAML makes of a text: the tree of its nodes, or the values
// in it, as ask.py writes them; or what it raises.
type Answer struct {
	Text           string
	Class, Message string
}

// UnmarshalJSON reads a text, or the two that say what is raised.
func (a *Answer) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, &[]any{&a.Class, &a.Message})
	}
	return json.Unmarshal(data, &a.Text)
}

// MarshalJSON is its counterpart.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a.Class != "" {
		return json.Marshal([]string{a.Class, a.Message})
	}
	return json.Marshal(a.Text)
}

//go:embed ask.py
var script string

// Values asks for values, where trees of nodes are told otherwise.
const Values = "load"

// Ask asks a Python that has PyYAML about texts.
func Ask(python string, args []string, texts iter.Seq[[]byte], answer func(text []byte, a Answer)) error {
	child := exec.Command(python, append([]string{"-c", script}, args...)...)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	asked := make(chan []byte, 512)
	go func() {
		defer close(asked)
		defer in.Close()
		for text := range texts {
			if _, err := in.Write([]byte(base64.StdEncoding.EncodeToString(text) + "\n")); err != nil {
				return // it ended; its answers do
			}
			asked <- slices.Clone(text)
		}
	}()
	answers := json.NewDecoder(bufio.NewReaderSize(out, 1<<20))
	for text := range asked {
		var a Answer
		if err := answers.Decode(&a); err != nil {
			child.Process.Kill() //nolint:errcheck // so that nothing waits for it
			return errors.Join(err, child.Wait())
		}
		answer(text, a)
	}
	return child.Wait()
}
