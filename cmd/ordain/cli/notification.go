package cli

import (
	"github.com/spf13/cobra"
)

// newNotification makes `ordain notification`.
func newNotification() *cobra.Command {
	r := &remote{}
	var all bool
	list := command("list ENVIRONMENT", "List unread notifications, newest first",
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
	list.Flags().BoolVar(&all, "all", false, "also those that were read or cleared")
	mark := func(body row) func(c *cobra.Command, args []string) error {
		return func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], patch, "/api/v2/notification/"+escape(args[1]), body, nil)
		}
	}
	return r.group(
		"notification",
		"Notifications for people",
		list,
		command("read ENVIRONMENT ID", "Mark a notification as read", mark(row{"read": true})),
		command("clear ENVIRONMENT ID", "Mark a notification as read and remove it from the list",
			mark(row{"read": true, "cleared": true})),
	)
}
