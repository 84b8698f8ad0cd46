package cli

import "github.com/spf13/cobra"

// newReplica makes `ordain replica`.
func newReplica() *cobra.Command {
	r := &remote{}
	return r.group("replica", "Show the server processes that share the work",
		command("list", "List the server processes that run, with their roles",
			func(c *cobra.Command, _ []string) error {
				var rows []row
				if err := r.call(c, get, "/api/v2/replica", nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "name", "roles", "version", "address", "started", "environments", "share")
			}))
}
