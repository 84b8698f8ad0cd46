package ansible

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// edition is a version of ansible-core, for the Pythons that it runs on.
type edition struct {
	python int    // the oldest Python 3.x here
	target string // the oldest Python on nodes
	core   string
}

// editions are the versions of ansible-core, the newest first.
var editions = []edition{
	{python: 12, target: "3.9", core: "2.21.5"},
	{python: 11, target: "3.8", core: "2.19.14"},
}

// dependencies of ansible-core, so that the environment is the same everywhere.
var dependencies = []string{
	"Jinja2==3.1.6", "MarkupSafe==3.0.4", "PyYAML==6.0.4", "cryptography==50.0.2", "cffi==2.1.1", "pycparser==3.12",
	"packaging==26.4", "resolvelib==1.2.1",
}

func editionFor(i venv.Interpreter) (edition, error) {
	major, minor, _ := strings.Cut(i.Minor, ".")
	number, err := strconv.Atoi(minor)
	for _, e := range editions {
		if err == nil && major == "3" && number >= e.python {
			return e, nil
		}
	}
	return edition{}, fault.New("ansible.environment", fault.Invalid,
		"the Python of the provisioner, "+i.Version+" at "+i.Path+", is too old for Ansible").
		Hint("install Python 3.11 or newer on the provisioner's machine, or name one in its configuration")
}

// environment returns the Python of the virtual environment, and makes the environment if there is none, or if it is
// damaged. That takes a minute once, and milliseconds from then on.
func (a *Ansible) environment(ctx context.Context, c plugin.Call) (string, error) {
	i, err := a.maker.Interpreter(ctx, a.config.Python)
	if err != nil {
		return "", err
	}
	e, err := editionFor(i)
	if err != nil {
		return "", err
	}
	made, err := a.maker.Ensure(ctx, venv.Spec{
		Dir:          filepath.Join(a.config.Folder, "ansible-core-"+e.core+"-python"+i.Minor),
		Python:       i.Path,
		Requirements: []string{"ansible-core==" + e.core},
		Constraints:  dependencies,
	})
	if err != nil {
		for _, step := range made.Steps {
			fmt.Fprintf(output(c), "%s\n%s%s\n", step.Command, step.Output, step.ErrOutput)
		}
		return "", fault.Wrap("ansible.environment", fault.Unavailable, err).
			Say("cannot install ansible-core " + e.core + " for the provisioner")
	}
	if made.Built {
		fmt.Fprintf(output(c), "installed ansible-core %s on the provisioner's machine, for Python %s\n",
			e.core, i.Version)
	}
	return made.Python, nil
}

func output(c plugin.Call) io.Writer {
	if c.Out == nil {
		return io.Discard
	}
	return c.Out
}
