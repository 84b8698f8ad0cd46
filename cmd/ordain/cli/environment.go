package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newEnvironment() *cobra.Command {
	r := &remote{}
	var repo, branch string
	set := command("set NAME", "Change the repository or branch of an environment",
		func(c *cobra.Command, args []string) error {
			var now row
			if err := r.in(c, args[0], get, "/api/v2/environment/%s", nil, &now); err != nil {
				return err
			}
			body := row{"name": now["name"], "repository": now["repo_url"], "branch": now["repo_branch"]}
			if c.Flags().Changed("repo") {
				body["repository"] = repo
			}
			if c.Flags().Changed("branch") {
				body["branch"] = branch
			}
			return r.in(c, args[0], post, "/api/v2/environment/%s", body, nil)
		},
	)
	set.Flags().StringVar(&repo, "repo", "", "URL of the repository")
	set.Flags().StringVar(&branch, "branch", "", "branch")

	return r.group(
		"environment",
		"Environments: each is kept equal to a branch",
		newCreateEnvironment(r),
		newCloneEnvironment(r),
		newCopySettings(r),
		set,
		command("list", "List environments", func(c *cobra.Command, _ []string) error {
			var rows []row
			if err := r.call(c, get, "/api/v2/environment", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "name", "id", "repo_url", "repo_branch", "halted")
		}),
		command(
			"secret NAME SECRET",
			"Set a secret, read from standard input: webhook, git-username, git-password, git-ssh-key, "+
				"git-ssh-passphrase, git-proxy, or variable:X for a variable X of handlers; empty removes it",
			func(c *cobra.Command, args []string) error {
				value, err := readSecret(c)
				if err != nil {
					return err
				}
				body := row{"value": value}
				return r.in(c, args[0], put, "/api/v2/environment/%s/secret/"+escape(args[1]), body, nil)
			},
		),
		command("secrets NAME", "List which secrets are set", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/environment/%s/secret", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "name", "value")
		}),
		newSync(r),
		command("halt NAME", "Stop compiles and deployments", func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], post, "/api/v2/actions/environment/halt", row{"by": userName()}, nil)
		}),
		command("resume NAME", "Undo halt", func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], post, "/api/v2/actions/environment/resume", row{"by": userName()}, nil)
		}),
		command("clear NAME", "Delete versions, resources and compiles, but keep the environment",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], remove, "/api/v2/decommission/%s", nil, nil)
			},
		),
		command("delete NAME", "Delete an environment", func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], remove, "/api/v2/environment/%s", nil, nil)
		}),
	)
}

// newSync makes `ordain environment sync`.
func newSync(r *remote) *cobra.Command {
	var partial bool
	var removed []string
	c := command("sync NAME", "Fetch and compile now", func(c *cobra.Command, args []string) error {
		if len(removed) > 0 && !partial {
			return usageError{fmt.Errorf("--delete-resource-set needs --partial")}
		}
		body := row{"update": true, "metadata": row{"type": "cli", "message": "ordain environment sync"}}
		if partial {
			body["partial"], body["removed_resource_sets"] = true, removed
		}
		return r.in(c, args[0], post, "/api/v1/notify/%s", body, nil)
	})
	c.Flags().
		BoolVar(&partial, "partial", false,
			"export only the resource sets of the model; the others stay as in the newest version")
	c.Flags().StringArrayVar(&removed, "delete-resource-set", nil, "resource set to remove with a partial export")
	return c
}

func newSettings() *cobra.Command {
	r := &remote{}
	return r.group("settings", "Settings of environments",
		command("list ENVIRONMENT", "List settings with their values", func(c *cobra.Command, args []string) error {
			var all struct {
				Settings   row            `json:"settings"`
				Definition map[string]row `json:"definition"`
			}
			if err := r.in(c, args[0], get, "/api/v2/environment_settings", nil, &all); err != nil {
				return err
			}
			var rows []row
			for _, name := range sortedKeys(all.Definition) {
				value, set := all.Settings[name]
				if !set {
					value = all.Definition[name]["default"]
				}
				rows = append(
					rows,
					row{
						"name":    name,
						"value":   value,
						"default": all.Definition[name]["default"],
						"doc":     all.Definition[name]["doc"],
					},
				)
			}
			return r.show(c, rows, "name", "value", "default", "doc")
		}),
		command("set ENVIRONMENT NAME VALUE", "Change a setting", func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], post, "/api/v2/environment_settings/"+escape(args[1]), row{"value": args[2]}, nil)
		}),
		command("reset ENVIRONMENT NAME", "Go back to the default", func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], remove, "/api/v2/environment_settings/"+escape(args[1]), nil, nil)
		}),
	)
}
