package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// readSecret reads a secret from standard input, without the line break that ends it.
func readSecret(c *cobra.Command) (string, error) {
	value, err := io.ReadAll(io.LimitReader(c.InOrStdin(), 64<<10))
	return strings.TrimRight(string(value), "\r\n"), err
}

// inProject calls a path below a project, which is named by name or id.
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
		"Set a secret for all environments of a project, read from standard input: webhook, git-username, git-password, git-ssh-key, git-ssh-passphrase, or git-proxy; empty removes it",
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
		"Show the keys of SSH servers that a project knows; with --add or --replace, change them",
		func(c *cobra.Command, args []string) error {
			if add && replace {
				return usageError{fmt.Errorf("--add and --replace exclude each other")}
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
	c.Flags().BoolVar(&add, "add", false, "add the lines on standard input")
	c.Flags().BoolVar(&replace, "replace", false, "replace all by the lines on standard input")
	return c
}
