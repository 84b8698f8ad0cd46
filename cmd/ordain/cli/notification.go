package cli

import (
	"github.com/spf13/cobra"
)

// newNotification makes `ordain notification`.
func newNotification() *cobra.Command {
	r := &remote{}
	var all bool
	list := command("list ENVIRONMENT", "List what nobody read yet, newest first",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/notification?limit=1000&sort=last.desc"
			if !all {
				path += "&filter.read=false&filter.cleared=false"
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "id", "last", "severity", "times", "title", "message")
		},
	)
	list.Flags().BoolVar(&all, "all", false, "also what was read or cleared")
	mark := func(body row) func(c *cobra.Command, args []string) error {
		return func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], patch, "/api/v2/notification/"+escape(args[1]), body, nil)
		}
	}
	return r.group(
		"notification",
		"What people should hear of",
		list,
		command("read ENVIRONMENT ID", "Mark one as read", mark(row{"read": true})),
		command("clear ENVIRONMENT ID", "Mark one as read and take it off the list",
			mark(row{"read": true, "cleared": true})),
	)
}
