package executor

import (
	"os/exec"
	"path/filepath"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/worker"
)

// openFiles is how many files a confined executor may have open.
const openFiles = 65536

// private makes the private folder of a process. It returns nil if executors are not confined.
func (m *Manager) private() (*isolation.Private, error) {
	if m.c.Cell == nil {
		return nil, nil
	}
	paths := m.c.Layout.Environment(m.c.Environment)
	err := m.c.Cell.Own(paths.Cache())
	if err == nil {
		var p *isolation.Private
		if p, err = m.c.Cell.Open(paths.Runs(), "executor"); err == nil {
			return p, nil
		}
	}
	return nil, fault.Disk("executor.start", paths.Runs(), err)
}

// confine confines a process to its private folder, the environment's cache, the handlers, which it
// can only read, and what the operator allows.
func (m *Manager) confine(c *worker.Config, private *isolation.Private, venvDir, python string) {
	if private == nil {
		return
	}
	paths := m.c.Layout.Environment(m.c.Environment)
	c.Bytecode = filepath.Join(paths.Cache(), "__pycache__")
	if m.c.Cell.Exact() && m.c.ChildrenMax > 0 {
		c.Tasks, c.TasksAlone = m.c.ChildrenMax, true
	}
	c.KeepOthers, c.Ended = m.c.KeepDaemons, private.Close
	if m.c.KeepDaemons {
		c.Ended = nil // daemons may use the folder
	}
	access := isolation.Access{
		Read:   append(isolation.Interpreter(python), c.Dir, venvDir, c.RuntimeDir),
		Write:  []string{paths.Cache()},
		Limits: isolation.Limits{OpenFiles: openFiles},
	}
	c.Confine = func(cmd *exec.Cmd) (func() (*isolation.Space, error), error) {
		if err := m.c.Cell.Share(paths.Dir(), c.Dir, venvDir); err != nil {
			return nil, fault.Disk("executor.start", paths.Dir(), err)
		}
		return private.Confine(cmd, access)
	}
}
