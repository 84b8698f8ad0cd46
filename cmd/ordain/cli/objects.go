package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newProject() *cobra.Command {
	r := &remote{}
	return r.group("project", "Install what a project's folder needs; groups of environments on a server",
		newProjectInstall("install", "Install what a project needs",
			"Installs into .env in the project's folder, which is made when it is not there, what the model needs:\n"+
				"the packages of requirements.txt and of the modules, and std. Modules that are imported and are no package\n"+
				"are cloned from the Git repositories of project.yml into its downloadpath. What is there and fits is kept.", false),
		newProjectInstall(
			"update",
			"Take the newest versions that the constraints allow",
			"Installs as `ordain project install` does, and brings packages and cloned modules to the newest versions that all\n"+
				"constraints allow. A cloned module with changes of yours is never touched.",
			true,
		),
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
		command("delete ID", "Delete a project with its environments", func(c *cobra.Command, args []string) error {
			return r.call(c, remove, "/api/v2/project/"+escape(args[0]), nil, nil)
		}),
	)
}

func newEnvironment() *cobra.Command {
	r := &remote{}
	var project, repo, branch string
	create := command(
		"create NAME",
		"Make an environment and bind it to a repository",
		func(c *cobra.Command, args []string) error {
			var projects []row
			if err := r.call(c, get, "/api/v2/project", nil, &projects); err != nil {
				return err
			}
			id := ""
			for _, p := range projects {
				if p["name"] == project || p["id"] == project {
					id = p["id"].(string)
				}
			}
			if id == "" {
				var made row
				if err := r.call(c, put, "/api/v2/project", row{"name": project}, &made); err != nil {
					return err
				}
				id = made["id"].(string)
			}
			var made row
			body := row{"project_id": id, "name": args[0], "repository": repo, "branch": branch}
			if err := r.call(c, put, "/api/v2/environment", body, &made); err != nil {
				return err
			}
			return r.show(c, []row{made}, "name", "id", "repo_url", "repo_branch")
		},
	)
	create.Flags().StringVar(&project, "project", "", "project by name or id; made when there is none")
	create.Flags().StringVar(&repo, "repo", "", "URL of the repository")
	create.Flags().StringVar(&branch, "branch", "", "branch; empty: the repository's own choice")
	_ = create.MarkFlagRequired("project")

	set := command(
		"set NAME",
		"Change the repository or branch of an environment",
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
		"What is kept equal to a branch",
		create,
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
			"Set a secret, read from standard input: webhook, git-username, git-password, git-ssh-key, git-ssh-passphrase, git-proxy, or variable:X for a variable X of handlers; empty removes it",
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
		command(
			"clear NAME",
			"Drop versions, resources and compiles, keep the environment",
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
		BoolVar(&partial, "partial", false, "export the resource sets of the model only; the newest version keeps the others")
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

func newVersions() *cobra.Command {
	r := &remote{}
	versions := r.group(
		"version",
		"Print the version of this program; list, release, confirm and compare versions of intent",
		command("list ENVIRONMENT", "List versions", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/desiredstate?limit=50", nil, &rows); err != nil {
				return err
			}
			for _, one := range rows {
				if hold, ok := one["hold"].(row); ok && hold["held"] == true && r.format != "json" {
					one["status"] = "held: " + cell(hold, "text")
				}
			}
			return r.show(c, rows, "version", "status", "date", "total", "released")
		}),
		newVersionShow(r),
		newVersionConfirm(r),
		command(
			"release ENVIRONMENT VERSION",
			"Make a version the intent",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], post, "/api/v2/desiredstate/"+escape(args[1])+"/promote", nil, nil)
			},
		),
		command("diff ENVIRONMENT FROM TO", "Compare two versions", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/desiredstate/diff/"+escape(args[1])+"/"+escape(args[2]), nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "resource_id", "status", "attributes")
		}),
	)
	versions.RunE = func(c *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(c.OutOrStdout(), "ordain "+Version)
		return err
	}
	return versions
}

func newResource() *cobra.Command {
	r := &remote{}
	var status, agent string
	var parked bool
	list := command(
		"list ENVIRONMENT",
		"List resources with their states",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/resource?limit=1000"
			if status != "" {
				path += "&filter.status=" + escape(status)
			}
			if agent != "" {
				path += "&filter.agent=" + escape(agent)
			}
			if parked {
				path += "&filter.parked=true"
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			if parked {
				return r.show(c, rows, "resource_id", "status", "parked", "parked_at", "attempts")
			}
			return r.show(c, rows, "resource_id", "status", "retry_at")
		},
	)
	list.Flags().BoolVar(&parked, "parked", false, "only those that are left alone until somebody frees them")
	list.Flags().StringVar(&status, "status", "", "only in this state, such as failed")
	list.Flags().StringVar(&agent, "agent", "", "only of agents whose name holds this")
	var full bool
	deploy := command(
		"deploy ENVIRONMENT",
		"Try again what is not as intended",
		func(c *cobra.Command, args []string) error {
			method := "push_incremental_deploy"
			if full {
				method = "push_full_deploy"
			}
			return r.in(c, args[0], post, "/api/v1/deploy", row{"agent_trigger_method": method}, nil)
		},
	)
	deploy.Flags().BoolVar(&full, "repair", false, "verify and repair every resource")
	return r.group(
		"resource",
		"Units of desired state",
		list,
		deploy,
		newUnpark(r),
		newWhy(r),
		command("show ENVIRONMENT ID", "Show one resource", func(c *cobra.Command, args []string) error {
			var one row
			if err := r.in(c, args[0], get, "/api/v2/resource/"+escape(args[1]), nil, &one); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, one)
			}
			for _, name := range sortedKeys(one) {
				fmt.Fprintf(c.OutOrStdout(), "%-20s %s\n", name, cell(one, name))
			}
			return nil
		}),
		command(
			"logs ENVIRONMENT ID",
			"Show the log of one resource, newest first",
			func(c *cobra.Command, args []string) error {
				var rows []row
				if err := r.in(c, args[0], get, "/api/v2/resource/"+escape(args[1])+"/logs?limit=100", nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "timestamp", "level", "action", "msg")
			},
		),
	)
}

func newCompileReport() *cobra.Command {
	r := &remote{}
	return r.group("compile-report", "What compiles did",
		command("list ENVIRONMENT", "List compile reports", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/compilereport?limit=50", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "id", "requested", "success", "version", "metadata.type", "metadata.message")
		}),
		command("show ENVIRONMENT ID", "Show one report with its stages", func(c *cobra.Command, args []string) error {
			var one row
			if err := r.in(c, args[0], get, "/api/v2/compilereport/"+escape(args[1]), nil, &one); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, one)
			}
			if newer := cell(one, "metadata.superseded_by"); newer != "" {
				fmt.Fprintln(c.OutOrStdout(), "Cancelled for a newer commit: "+newer)
			}
			stages, _ := one["reports"].([]any)
			for _, s := range stages {
				stage, _ := s.(row)
				fmt.Fprintf(c.OutOrStdout(), "%s (%s)\n", cell(stage, "name"), cell(stage, "returncode"))
				for _, stream := range []string{"outstream", "errstream"} {
					text, _ := stage[stream].(string)
					for line := range strings.Lines(text) {
						fmt.Fprintln(c.OutOrStdout(), "  "+printable(strings.TrimRight(line, "\n")))
					}
				}
			}
			return nil
		}),
	)
}

func newAgent() *cobra.Command {
	r := &remote{}
	act := func(action string) func(*cobra.Command, []string) error {
		return func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], post, "/api/v2/agent/"+escape(args[1])+"/"+action, row{"by": userName()}, nil)
		}
	}
	return r.group("agent", "Names of targets",
		command("list ENVIRONMENT", "List agents", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/agents?limit=1000", nil, &rows); err != nil {
				return err
			}
			for _, one := range rows {
				one["target"] = "" // nothing is known against it
				if breaker, ok := one["breaker"].(row); ok && breaker["state"] == "open" {
					one["target"] = fmt.Sprintf(
						"unreachable since %s, next try %s",
						cell(breaker, "since"),
						cell(breaker, "next_probe"),
					)
				}
			}
			return r.show(c, rows, "name", "status", "paused", "target")
		}),
		command("pause ENVIRONMENT NAME", "Let an agent's resources wait", act("pause")),
		command("unpause ENVIRONMENT NAME", "Undo pause", act("unpause")),
	)
}
