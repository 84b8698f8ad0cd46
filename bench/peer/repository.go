package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Repository is a bare Git repository with a model of do-nothing resources,
// and a working copy to push from.
type Repository struct {
	Bare   string
	work   string
	model  Model
	values []int
}

// Model says what a repository holds.
type Model struct {
	Items   int
	Agents  int    // targets that the items are spread over
	Failing int    // further items whose handler always fails
	Chain   int    // items in a row that require the one before; 0: none does
	Plugins string // the module's Python code; empty: a handler that does nothing
}

const pluginsFile = "libs/bench/plugins/__init__.py"

var projectFiles = map[string]string{
	"project.yml": "name: bench\nmodulepath: libs\npip:\n  use_system_config: true\n",
	"requirements.txt": `inmanta-module-std; python_version >= "3.12"
inmanta-module-std<8; python_version < "3.12"
`,
	"libs/bench/module.yml": "name: bench\nversion: 1.0.0\nlicense: Apache 2.0\n",
	"libs/bench/model/_init.cf": `entity Item extends std::PurgeableResource:
    string agent
    string name
    string value
end
index Item(agent, name)
implement Item using std::none
`,
	pluginsFile: `from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import PurgeableResource, resource


@resource("bench::Item", agent="agent", id_attribute="name")
class Item(PurgeableResource):
    fields = ("agent", "name", "value")


@provider("bench::Item", name="nothing")
class Nothing(CRUDHandler[Item]):
    """Finds everything as it should be."""

    def read_resource(self, ctx, resource):
        if resource.value == "fail":
            raise Exception("this one always fails")
`,
}

// NewRepository makes a repository below dir and pushes the model's first commit.
func NewRepository(ctx context.Context, dir string, m Model) (*Repository, error) {
	r := &Repository{
		Bare:   filepath.Join(dir, "repo.git"),
		work:   filepath.Join(dir, "work"),
		model:  m,
		values: make([]int, m.Items),
	}
	for name, content := range projectFiles {
		if name == pluginsFile && m.Plugins != "" {
			content = m.Plugins
		}
		file := filepath.Join(r.work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	if err := r.write(); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", "main", r.Bare},
		{"init", "-q", "-b", "main", r.work},
		{"-C", r.work, "remote", "add", "origin", r.Bare},
	} {
		if err := git(ctx, args...); err != nil {
			return nil, err
		}
	}
	if err := r.commit(ctx, "the first items"); err != nil {
		return nil, err
	}
	return r, r.Push(ctx)
}

// ID returns the resource id of item i.
func (r *Repository) ID(i int) string {
	return fmt.Sprintf("bench::Item[a%d,name=item%d]", i%r.model.Agents, i)
}

// Value returns the value that item i was last given.
func (r *Repository) Value(i int) string { return fmt.Sprint(r.values[i]) }

// Change commits another value for item i. It does not push.
func (r *Repository) Change(ctx context.Context, i int) error {
	r.values[i]++
	if err := r.write(); err != nil {
		return err
	}
	return r.commit(ctx, fmt.Sprintf("item %d is %d", i, r.values[i]))
}

// ChangeSome commits another value for each of these items and, unless plugins is
// empty, other Python code for the module. It does not push.
func (r *Repository) ChangeSome(ctx context.Context, items []int, plugins string) error {
	for _, i := range items {
		r.values[i]++
	}
	if plugins != "" {
		file := filepath.Join(r.work, filepath.FromSlash(pluginsFile))
		if err := os.WriteFile(file, []byte(plugins), 0o644); err != nil {
			return err
		}
	}
	if err := r.write(); err != nil {
		return err
	}
	return r.commit(ctx, fmt.Sprintf("%d items change", len(items)))
}

// ChangeAll commits another value for every item. It does not push.
func (r *Repository) ChangeAll(ctx context.Context) error {
	for i := range r.values {
		r.values[i]++
	}
	if err := r.write(); err != nil {
		return err
	}
	return r.commit(ctx, "every item changes")
}

// Push pushes all commits.
func (r *Repository) Push(ctx context.Context) error {
	return git(ctx, "-C", r.work, "push", "-q", "origin", "main")
}

func (r *Repository) write() error {
	var b strings.Builder
	b.WriteString("import bench\n")
	for i, v := range r.values {
		requires := ""
		if r.model.Chain > 0 {
			fmt.Fprintf(&b, "item%d = ", i)
			if i%r.model.Chain > 0 {
				requires = fmt.Sprintf(", requires=item%d", i-1)
			}
		}
		fmt.Fprintf(&b, "bench::Item(agent=\"a%d\", name=\"item%d\", value=\"%d\"%s)\n", i%r.model.Agents, i, v,
			requires)
	}
	for i := range r.model.Failing {
		fmt.Fprintf(&b, "bench::Item(agent=\"a%d\", name=\"bad%d\", value=\"fail\")\n", i%r.model.Agents, i)
	}
	return os.WriteFile(filepath.Join(r.work, "main.cf"), []byte(b.String()), 0o644)
}

func (r *Repository) commit(ctx context.Context, message string) error {
	if err := git(ctx, "-C", r.work, "add", "-A"); err != nil {
		return err
	}
	return git(ctx, "-C", r.work, "-c", "user.name=Bench", "-c", "user.email=bench@example.org",
		"commit", "-q", "-m", message)
}

func git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
