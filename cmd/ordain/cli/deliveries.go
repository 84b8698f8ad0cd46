package cli

import (
	"strconv"

	"github.com/spf13/cobra"
)

// deliveryCommands make `ordain hook list|show|redeliver`.
func deliveryCommands(r *remote) []*cobra.Command {
	var state string
	var limit int
	list := command(
		"list ENVIRONMENT",
		"List the webhooks that were received for an environment, newest first, and what came of them",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/deliveries?limit=" + strconv.Itoa(limit)
			if state != "" {
				path += "&filter.state=" + escape(state)
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "received", "id", "forge", "name", "ref", "commit", "state", "reason")
		},
	)
	list.Flags().StringVar(&state, "state", "", "only these: waiting, started, skipped, failed or refused")
	list.Flags().IntVar(&limit, "limit", 50, "how many, at most 1000")
	show := command(
		"show ENVIRONMENT ID",
		"Show one webhook with all that it told",
		func(c *cobra.Command, args []string) error {
			var one row
			if err := r.in(c, args[0], get, "/api/v2/deliveries/"+escape(args[1]), nil, &one); err != nil {
				return err
			}
			return r.showJSON(c, one)
		},
	)
	again := command(
		"redeliver ENVIRONMENT ID",
		"Act on a webhook anew, as if the forge had sent it again",
		func(c *cobra.Command, args []string) error {
			var one row
			if err := r.in(c, args[0], post, "/api/v2/deliveries/"+escape(args[1])+"/redeliver", row{}, &one); err != nil {
				return err
			}
			return r.show(c, []row{one}, "received", "id", "forge", "name", "ref", "commit", "state", "reason")
		},
	)
	return []*cobra.Command{list, show, again}
}
