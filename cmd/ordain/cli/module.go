package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/server/build/install"
)

// local holds the flags of the commands that work on a project's folder.
type local struct {
	dir    string
	main   string
	python string
	cache  string
}

func (l *local) add(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&l.dir, "project", projectHere(), "folder with project.yml")
	c.Flags().StringVar(&l.main, "main", "main.cf", "entry file, relative to the project or absolute")
	return c
}

func (l *local) addInstall(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&l.python, "python", "", "interpreter to make .env with, when there is none")
	c.Flags().StringVar(&l.cache, "cache-dir", "", "folder for what can be made again")
	return l.add(c)
}

// newProjectInstall makes `ordain project install` and `ordain project update`.
func newProjectInstall(use, short, long string, update bool) *cobra.Command {
	l := &local{}
	c := command(use, short, func(c *cobra.Command, _ []string) error { return l.install(c, update) })
	c.Long = long
	return l.addInstall(c)
}

// install installs what the project needs into its .env and its downloadpath.
func (l *local) install(c *cobra.Command, update bool) error {
	if err := chooseCache(&l.cache); err != nil {
		return err
	}
	dir, err := filepath.Abs(l.dir)
	if err != nil {
		return err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	maker, err := venv.New(
		venv.Config{
			Python: l.python, CacheDir: l.cache, ToolsDir: filepath.Join(l.cache, "tools"),
			SSHAgent: true, Logger: quiet,
		},
	)
	if err != nil {
		return err
	}
	git, err := gitsync.New(
		gitsync.Config{
			Mirrors:  filepath.Join(l.cache, "mirrors"),
			Logger:   quiet,
			SSHAgent: os.Getenv("SSH_AUTH_SOCK"),
		},
	)
	if err != nil {
		return err
	}
	installer, err := install.New(install.Config{Maker: maker, Git: git, Logger: quiet})
	if err != nil {
		return err
	}
	result, err := installer.Install(c.Context(), install.Request{
		Dir: dir, Main: l.main, Venv: filepath.Join(dir, ".env"),
		InPlace: true, Update: update, Refresh: true, Reach: asOnThisMachine,
		Out: func(stdout, stderr string) {
			// The names of repositories and packages come from elsewhere.
			fmt.Fprint(c.OutOrStdout(), diag.PlainText(stdout))
			fmt.Fprint(c.ErrOrStderr(), diag.PlainText(stderr))
		},
	})
	var f *fault.Error
	if errors.As(err, &f) && f.Kind == fault.Forbidden && errors.Is(err, fs.ErrPermission) {
		return f.Hint("this needs a writable project folder; `ordain compile` installs packages into its cache instead")
	}
	if err != nil {
		return err
	}
	w := c.OutOrStdout()
	if !result.Python.Built && len(result.Downloaded) == 0 {
		fmt.Fprintln(w, "Everything that the project needs is installed")
	} else {
		fmt.Fprintf(w, "Installed into %s, for Python %s\n", filepath.Join(l.dir, ".env"),
			result.Python.Interpreter.Version)
	}
	if len(result.Broken) > 0 {
		return fault.New("install", fault.Conflict,
			"these modules are not of the version that is wanted:\n  "+strings.Join(result.Broken, "\n  ")).
			Hint("change a constraint, or run `ordain project update` to take newer versions")
	}
	return nil
}

// asOnThisMachine fetches modules over SSH as the user's own ssh does: with the
// keys of the SSH agent, from hosts in known_hosts.
func asOnThisMachine(string) (gitsync.Credentials, gitsync.Trust) {
	var trust gitsync.Trust
	if home, err := os.UserHomeDir(); err == nil {
		if text, err := os.ReadFile(filepath.Join(home, ".ssh", "known_hosts")); err == nil {
			trust.KnownHosts = string(text)
		}
	}
	return gitsync.Credentials{}, trust
}

func newProjectFreeze() *cobra.Command {
	l := &local{}
	var f install.Freeze
	var out string
	c := command("freeze", "Write the versions of the modules into project.yml",
		func(c *cobra.Command, _ []string) error {
			p, err := module.OpenProject(l.dir)
			if err != nil {
				return err
			}
			if f.Operator == "" {
				f.Operator = p.Metadata.FreezeOperator
			}
			if !slices.Contains([]string{"==", "~=", ">="}, f.Operator) {
				return usageError{fmt.Errorf("--operator is ==, ~= or >=, not %q", f.Operator)}
			}
			if !c.Flags().Changed("recursive") {
				f.Recursive = p.Metadata.FreezeRecursive
			}
			text, err := f.Project(p, l.main)
			if err != nil {
				return err
			}
			if out == "-" {
				_, err := c.OutOrStdout().Write(text)
				return err
			}
			if out == "" {
				out = filepath.Join(p.Dir, "project.yml")
			}
			return writeFile(out, func(w io.Writer) error { _, err := w.Write(text); return err })
		},
	)
	c.Long = "Replaces requires in project.yml by the versions of the installed modules: those that main.cf\n" +
		"imports and std, or with --recursive all that the model uses. Everything else in the file stays as it is."
	c.Flags().BoolVarP(&f.Recursive, "recursive", "r", false, "all modules (default: freeze_recursive of project.yml)")
	c.Flags().StringVar(&f.Operator, "operator", "", "==, ~= or >= (default: freeze_operator of project.yml)")
	c.Flags().StringVarP(&out, "outfile", "f", "", "file to write; - for standard output (default: project.yml)")
	return l.add(c)
}

func newModule() *cobra.Command {
	r := &remote{}
	c := &cobra.Command{
		Use:   "module",
		Short: "Modules of a project",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newModuleList(r), newProjectInstall("update", "Take the newest versions that the constraints allow",
		"The same as `ordain project update`.", true))
	return c
}

func newModuleList(r *remote) *cobra.Command {
	l := &local{}
	list := command("list", "List the modules that the model uses", func(c *cobra.Command, _ []string) error {
		p, err := module.OpenProject(l.dir)
		if err != nil {
			return err
		}
		p.Applies = install.Conditions(p.SitePackages)
		scan := p.Scan(l.main)
		wishes := p.Wishes(scan.Modules)
		var rows []row
		for _, m := range scan.Modules {
			rows = append(rows, row{
				"name": m.Name, "version": m.Version, "kind": kindOf(m), "wanted": wanted(wishes[m.Name]),
				"match": yesNo(len(module.Broken(wishes[m.Name], m.Version)) == 0), "where": shorten(p.Dir, m.Path),
			})
		}
		for _, m := range scan.Missing {
			rows = append(
				rows,
				row{
					"name":    m.Name,
					"version": "",
					"kind":    "missing",
					"wanted":  wanted(wishes[m.Name]),
					"match":   "no",
					"where":   importedAt(m),
				},
			)
		}
		slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
		return r.show(c, rows, "name", "version", "kind", "wanted", "match", "where")
	})
	list.Long = "Prints one line for each module: its version, whether it is a folder (v1), a package (v2) or a\n" +
		"package that is used from its repository (editable), the versions that project.yml, requirements.txt\n" +
		"and other modules want, and its path."
	list.Flags().StringVarP(&r.format, "output", "o", "table", "table or json")
	return l.add(list)
}

// importedAt says where a missing module is imported. Every model has std.
func importedAt(m module.Missing) string {
	if m.At.File != nil && m.At.File.Path == "__internal__" {
		return "part of every model"
	}
	return "imported at " + m.At.String()
}

func kindOf(m *module.Module) string {
	switch {
	case m.Generation == 1:
		return "v1"
	case m.Editable:
		return "editable"
	}
	return "v2"
}

func wanted(wishes []module.Wish) string {
	var all []string
	for _, w := range wishes {
		if s := w.Versions.String(); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return "*"
	}
	return strings.Join(all, ",")
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// shorten returns a path relative to the project or, with ~, to the home folder if it lies there.
func shorten(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	if home, err := os.UserHomeDir(); err == nil {
		if rel, err := filepath.Rel(home, path); err == nil && !strings.HasPrefix(rel, "..") {
			return filepath.Join("~", rel)
		}
	}
	return path
}
