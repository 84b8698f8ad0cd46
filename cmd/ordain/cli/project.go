package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/internal/intent"
)

func newProject() *cobra.Command {
	r := &remote{}
	return r.group("project", "Install what a project's folder needs; manage groups of environments on a server",
		newProjectInstall("install", "Install what a project needs",
			"Installs what the model needs into .env in the project's folder, and makes .env if it does not exist:\n"+
				"the packages of requirements.txt and of the modules, and std. Imported modules that are not\n"+
				"packages are cloned from the Git repositories of project.yml into its downloadpath. What is there\n"+
				"and fits is kept.", false),
		newProjectInstall("update", "Take the newest versions that the constraints allow",
			"Installs as `ordain project install` does, and brings packages and cloned modules to the newest\n"+
				"versions that all constraints allow. A cloned module with changes of yours is never touched.", true),
		newProjectFreeze(),
		command("list", "List projects", func(c *cobra.Command, _ []string) error {
			var rows []row
			if err := r.call(c, get, "/api/v2/project", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "name", "id")
		}),
		command("create NAME", "Make a project", func(c *cobra.Command, args []string) error {
			var made row
			if err := r.call(c, put, "/api/v2/project", row{"name": args[0]}, &made); err != nil {
				return err
			}
			return r.show(c, []row{made}, "name", "id")
		}),
		newProjectSecret(r),
		command("secrets NAME", "List which secrets a project has", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.inProject(c, args[0], get, "/secret", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "name", "value")
		}),
		newKnownHosts(r),
		newQuota(r),
		command("delete ID", "Delete a project with its environments", func(c *cobra.Command, args []string) error {
			return r.call(c, remove, "/api/v2/project/"+escape(args[0]), nil, nil)
		}),
	)
}

// maxSecret bounds how much is read of a secret.
const maxSecret = 64 << 10

// readSecret reads a secret from standard input, without the line break at its end.
func readSecret(c *cobra.Command) (string, error) {
	value, err := io.ReadAll(io.LimitReader(c.InOrStdin(), maxSecret))
	return strings.TrimRight(string(value), "\r\n"), err
}

// inProject sends a request to a path below the project with this name or id.
func (r *remote) inProject(c *cobra.Command, name, method, path string, body, into any) error {
	var projects []row
	if err := r.call(c, get, "/api/v2/project", nil, &projects); err != nil {
		return err
	}
	for _, p := range projects {
		if p["name"] == name || p["id"] == name {
			return r.call(c, method, "/api/v2/project/"+p["id"].(string)+path, body, into)
		}
	}
	return fmt.Errorf("there is no project called %s; see ordain project list", name)
}

func newProjectSecret(r *remote) *cobra.Command {
	return command(
		"secret NAME SECRET",
		"Set a secret for all environments of a project, read from standard input: webhook, git-username, "+
			"git-password, git-ssh-key, git-ssh-passphrase, or git-proxy; empty removes it",
		func(c *cobra.Command, args []string) error {
			value, err := readSecret(c)
			if err != nil {
				return err
			}
			return r.inProject(c, args[0], put, "/secret/"+escape(args[1]), row{"value": value}, nil)
		},
	)
}

// newKnownHosts makes `ordain project known-hosts`.
func newKnownHosts(r *remote) *cobra.Command {
	var add, replace bool
	c := command(
		"known-hosts NAME",
		"Show the SSH servers' keys that a project knows; with --add or --replace, change them",
		func(c *cobra.Command, args []string) error {
			if add && replace {
				return usageError{fmt.Errorf("--add and --replace cannot be combined")}
			}
			var now string
			if err := r.inProject(c, args[0], get, "/known_hosts", nil, &now); err != nil {
				return err
			}
			if !add && !replace {
				_, err := io.WriteString(c.OutOrStdout(), now)
				return err
			}
			given, err := io.ReadAll(io.LimitReader(c.InOrStdin(), 1<<20))
			if err != nil {
				return err
			}
			lines := string(given)
			if add {
				lines = now + lines
			}
			return r.inProject(c, args[0], put, "/known_hosts", row{"lines": lines}, nil)
		},
	)
	c.Flags().BoolVar(&add, "add", false, "add the lines from standard input")
	c.Flags().BoolVar(&replace, "replace", false, "replace all keys by the lines from standard input")
	return c
}

// newQuota makes `ordain project quota`.
func newQuota(r *remote) *cobra.Command {
	given := map[string]*string{}
	c := command(
		"quota NAME",
		"Show how much a project may use and uses; with flags, set it (administrators of the server)",
		func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.inProject(c, args[0], get, "/quota", nil, &rows); err != nil {
				return err
			}
			limits, changed := row{}, false
			for _, one := range rows {
				limits[one["name"].(string)] = one["limit"]
			}
			for name, value := range given {
				if !c.Flags().Changed(name) {
					continue
				}
				most, err := intent.ParseAmount(*value)
				if err != nil {
					return usageError{fmt.Errorf("--%s: %w", name, err)}
				}
				limits[name], changed = most, true
			}
			if changed {
				if err := r.inProject(c, args[0], put, "/quota", limits, &rows); err != nil {
					return err
				}
			}
			return r.show(c, rows, "name", "use", "limit")
		},
	)
	for _, kind := range intent.QuotaKinds {
		given[string(kind)] = c.Flags().String(string(kind), "", "most "+kind.Meaning()+"; none for no limit")
	}
	return c
}
