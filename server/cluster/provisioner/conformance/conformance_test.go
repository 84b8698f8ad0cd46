package conformance_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/provisioner/conformance"
	"ordain.dev/ordain/server/cluster/provisioner/conformance/conformancetest"
	"ordain.dev/ordain/server/cluster/provisioner/program"
	"ordain.dev/ordain/server/cluster/task"
)

// The two examples of docs/plugins.md keep the contract, confined as a server does it and not confined.
func TestExamples(t *testing.T) {
	tool.Heavy(t, "plays the examples in three languages")
	tool.Need(t, "python3")
	for _, name := range []string{"python", "shell"} {
		for how, confined := range map[string]bool{"confined": true, "not confined": false} {
			t.Run(name+" "+how, func(t *testing.T) {
				conformancetest.Program(t, open(t, name, confined, ""))
				conformancetest.Provider(t, func(t *testing.T) conformance.Subject {
					world := t.TempDir()
					if err := os.Chmod(world, 0o777); err != nil { // the plug-in may have a user of its own
						t.Fatal(err)
					}
					text, _ := json.Marshal(world)
					return conformance.Subject{
						Plugin: open(t, name, confined, world), Fields: task.Fields{"world": text},
						Machines: func(context.Context) ([]string, error) { return machines(world) },
					}
				})
			})
		}
	}
}

func machines(world string) ([]string, error) {
	found, err := os.ReadDir(world)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range found {
		if !strings.HasSuffix(f.Name(), ".part") { // of a call that was cut off
			out = append(out, f.Name())
		}
	}
	return out, nil
}

// open opens an example. The folders of the repository may be closed to other users, so it is copied.
func open(t *testing.T, name string, confined bool, world string) *program.Program {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	c := program.Config{}
	if confined {
		support := isolation.Detect()
		if support.None() {
			t.Skip("this kernel cannot confine anything")
		}
		config := isolation.Config{Support: support}
		if support.Users && isolation.Mapped(2_000_000_000, 1) {
			config.FirstUser = 2_000_000_000
		}
		if world != "" {
			config.Write = []string{world}
		}
		c.Cell = config.Cell(0)
	}
	p, err := program.Open(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
