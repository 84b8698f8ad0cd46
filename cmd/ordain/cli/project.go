package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
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

// readSecret reads a secret from standard input, without the line break at its end.
func readSecret(c *cobra.Command) (string, error) {
	value, err := io.ReadAll(io.LimitReader(c.InOrStdin(), 64<<10))
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

// quotaKinds are the quotas of a project, and what each limits.
var quotaKinds = [][2]string{
	{"environments", "environments"},
	{"resources", "resources in all environments"},
	{"executors", "processes that run handlers at a time"},
	{"compiles", "compiles and previews that run at a time"},
	{"disk", "bytes of the folders of all environments, with K, M, G or T for units of 1024"},
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
				most, err := parseQuota(*value)
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
	for _, kind := range quotaKinds {
		given[kind[0]] = c.Flags().String(kind[0], "", "most "+kind[1]+"; none for no limit")
	}
	return c
}

// parseQuota reads a number, with a unit of 1024 if there is one, or none for no limit.
func parseQuota(text string) (*int64, error) {
	if text == "none" {
		return nil, nil
	}
	number, shift := text, 0
	if i := strings.IndexAny(text, "KMGT"); i > 0 && i == len(text)-1 {
		number, shift = text[:i], 10*(1+strings.IndexByte("KMGT", text[i]))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return nil, fmt.Errorf("%q is neither a number, such as 20 or 5G, nor none", text)
	}
	n <<= shift
	return &n, nil
}
