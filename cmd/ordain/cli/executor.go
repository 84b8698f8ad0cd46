package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

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
				"This server does not run the environment's executors now: another one has the environment, or it is starting.",
			)
		}
		rows := map[string][]row{"processes": all.Processes, "folders": all.Folders}[part]
		return r.show(c, rows, columns...)
	}
	return r.group(
		"executor",
		"What runs the handlers of an environment",
		command("list ENVIRONMENT", "List the processes, oldest first", func(c *cobra.Command, args []string) error {
			return report(
				c,
				args[0],
				"processes",
				"blueprint",
				"pid",
				"memory_bytes",
				"agents",
				"running",
				"started",
				"idle_since",
				"ending",
				"modules",
			)
		}),
		command(
			"disk ENVIRONMENT",
			"List virtual environments and sources, used last first",
			func(c *cobra.Command, args []string) error {
				return report(c, args[0], "folders", "kind", "hash", "bytes", "bytes_alone", "last_used", "in_use")
			},
		),
	)
}
