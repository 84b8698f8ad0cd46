package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newAgent() *cobra.Command {
	r := &remote{}
	act := func(action string) func(*cobra.Command, []string) error {
		return func(c *cobra.Command, args []string) error {
			body := row{"by": userName(), "strict": true}
			return r.in(c, args[0], post, "/api/v2/agent/"+escape(args[1])+"/"+action, body, nil)
		}
	}
	group := r.group("agent", "Agents: the targets of deployments",
		command("list ENVIRONMENT", "List agents", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/agents?limit=1000", nil, &rows); err != nil {
				return err
			}
			for _, one := range rows {
				one["target"] = "" // reachable, as far as the server knows
				if breaker, ok := one["breaker"].(row); ok && breaker["state"] == "open" {
					one["target"] = fmt.Sprintf("unreachable since %s, next try %s", cell(breaker, "since"),
						cell(breaker, "next_probe"))
				}
			}
			var remotes []row
			if err := r.in(c, args[0], get, remoteAgentPath, nil, &remotes); err != nil {
				return err
			}
			rows = withRemotes(rows, remotes)
			return r.show(c, rows, "name", "status", "paused", "target", "remote", "program", "waiting",
				"certificate_expires", "problem")
		}),
		command("pause ENVIRONMENT NAME", "Stop deploying an agent's resources", act("pause")),
		command("unpause ENVIRONMENT NAME", "Deploy an agent's resources again", act("unpause")),
		newAgentConformance(),
	)
	group.AddCommand(remoteAgents(r)...)
	return runAgent(group)
}

// newExecutor makes `ordain executor`.
func newExecutor() *cobra.Command {
	r := &remote{}
	report := func(c *cobra.Command, env, part string, columns ...string) error {
		var all struct {
			Here      bool  `json:"here"`
			Processes []row `json:"processes"`
			Folders   []row `json:"folders"`
		}
		if err := r.in(c, env, get, "/api/v2/executors", nil, &all); err != nil {
			return err
		}
		if !all.Here {
			fmt.Fprintln(
				c.ErrOrStderr(),
				"This server does not run the environment's executors now: another one has the environment, or "+
					"it is starting.",
			)
		}
		rows := map[string][]row{"processes": all.Processes, "folders": all.Folders}[part]
		return r.show(c, rows, columns...)
	}
	return r.group(
		"executor",
		"Executors: the processes that run handlers",
		command("list ENVIRONMENT", "List the processes, oldest first", func(c *cobra.Command, args []string) error {
			return report(c, args[0], "processes", "blueprint", "pid", "memory_bytes", "agents", "running",
				"started", "idle_since", "ending", "modules")
		}),
		command("disk ENVIRONMENT", "List virtual environments and handler sources, most recently used first",
			func(c *cobra.Command, args []string) error {
				return report(c, args[0], "folders", "kind", "hash", "bytes", "bytes_alone", "last_used", "in_use")
			},
		),
	)
}
