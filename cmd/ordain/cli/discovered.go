package cli

import "github.com/spf13/cobra"

// newDiscovered makes `ordain discovered`.
func newDiscovered() *cobra.Command {
	r := &remote{}
	var unmanaged bool
	list := command(
		"list ENVIRONMENT",
		"List what discovery resources found outside",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/discovered?limit=1000"
			if unmanaged {
				path += "&filter.managed=false"
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			for _, one := range rows {
				one["managed"] = one["managed_resource_uri"] != nil
			}
			return r.show(c, rows, "discovered_resource_id", "managed", "discovered_at", "discovery_resource_id")
		},
	)
	list.Flags().BoolVar(&unmanaged, "unmanaged", false, "only what no resource manages")
	return r.group(
		"discovered",
		"What was found that the model need not make",
		list,
		command(
			"forget ENVIRONMENT ID",
			"Forget one; it comes back when it is found again",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], remove, "/api/v2/discovered/"+escape(args[1]), nil, nil)
			},
		),
	)
}
