package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newDrift makes `ordain drift`.
func newDrift() *cobra.Command {
	r := &remote{}
	var open bool
	var resource string
	list := command(
		"list ENVIRONMENT",
		"List what was found to be other than the intent, newest first",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/drift?limit=1000"
			if open {
				path += "&filter.open=true"
			}
			if resource != "" {
				path += "&filter.resource_id=" + escape(resource)
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			for _, one := range rows {
				if one["ending"] == nil {
					one["ending"] = "open"
				}
			}
			return r.show(c, rows, "since", "ending", "resource_id", "attribute", "desired", "found", "ended")
		},
	)
	list.Flags().BoolVar(&open, "open", false, "only what still is otherwise")
	list.Flags().StringVar(&resource, "resource", "", "only of resources whose id holds this")
	return r.group("drift", "What was changed by others than the model", list)
}

// newUnpark makes `ordain resource unpark`.
func newUnpark(r *remote) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "unpark ENVIRONMENT [ID...]", Short: "Free resources that are left alone, and try them again",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 1) {
				return usageError{fmt.Errorf("name the resources to free, or say --all")}
			}
			body := row{}
			if !all {
				body["resource_ids"] = args[1:]
			}
			var freed []string
			if err := r.in(c, args[0], post, "/api/v2/unpark", body, &freed); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, freed)
			}
			for _, id := range freed {
				fmt.Fprintln(c.OutOrStdout(), printable(id))
			}
			if len(freed) == 0 {
				fmt.Fprintln(c.ErrOrStderr(), "none of them was parked")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every resource that is parked")
	return c
}
