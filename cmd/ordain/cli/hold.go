package cli

import (
	"errors"
	"fmt"
	"os/user"

	"github.com/spf13/cobra"
)

// newVersionShow makes `ordain version show`.
func newVersionShow(r *remote) *cobra.Command {
	return command(
		"show ENVIRONMENT VERSION",
		"Show one version and, when it is held, what it would take away",
		func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/desiredstate?limit=1&filter.version=ge:"+escape(args[1])+"&filter.version=le:"+escape(args[1]), nil, &rows); err != nil {
				return err
			}
			if len(rows) == 0 {
				return fmt.Errorf("there is no version %s in %s", printable(args[1]), printable(args[0]))
			}
			one := rows[0]
			if one["hold"] != nil {
				var hold row
				if err := r.in(c, args[0], get, "/api/v2/desiredstate/"+escape(args[1])+"/hold", nil, &hold); err != nil {
					return err
				}
				one["hold"] = hold
			}
			if r.format == "json" {
				return r.showJSON(c, one)
			}
			for _, name := range []string{"version", "status", "date", "total"} {
				fmt.Fprintf(c.OutOrStdout(), "%-10s %s\n", name, cell(one, name))
			}
			if hold, ok := one["hold"].(row); ok {
				return r.showHold(c, hold)
			}
			return nil
		},
	)
}

// showHold prints why a version is held, and what goes.
func (r *remote) showHold(c *cobra.Command, hold row) error {
	out := c.OutOrStdout()
	if confirmed, ok := hold["confirmed"].(row); ok {
		fmt.Fprintf(
			out,
			"confirmed  by %s at %s: %s\n",
			cell(confirmed, "by"),
			cell(confirmed, "at"),
			cell(confirmed, "reason"),
		)
	}
	fmt.Fprintf(out, "held       since %s: %s\n", cell(hold, "since"), cell(hold, "text"))
	if hold["confirmable"] == false {
		fmt.Fprintln(out, "           cannot be confirmed while protected_resources protects what it takes away")
	}
	for _, name := range []string{"first_protected", "first"} {
		list, _ := hold[name].([]any)
		for _, item := range list {
			one, ok := item.(row)
			if !ok {
				continue
			}
			how := "gone"
			if one["purged"] == true {
				how = "purged"
			}
			if name == "first_protected" {
				how += ", protected"
			}
			fmt.Fprintf(out, "  %s (%s)\n", cell(one, "resource_id"), how)
		}
		if rest, ok := hold["removed"].(float64); ok && name == "first" && int(rest) > len(list) && len(list) > 0 {
			fmt.Fprintf(out, "  and %d more\n", int(rest)-len(list))
		}
	}
	return nil
}

// newVersionConfirm makes `ordain version confirm`.
func newVersionConfirm(r *remote) *cobra.Command {
	var by, reason string
	c := command(
		"confirm ENVIRONMENT VERSION",
		"Release a version that is held; what it takes away is shown by `ordain version show`",
		func(c *cobra.Command, args []string) error {
			if reason == "" {
				return usageError{errors.New("say why with --reason; it is kept with the version")}
			}
			if by == "" {
				me, err := user.Current()
				if err != nil {
					return usageError{errors.New("say who you are with --by")}
				}
				by = me.Username
			}
			var done row
			if err := r.in(c, args[0], post, "/api/v2/desiredstate/"+escape(args[1])+"/confirm", row{"by": by, "reason": reason}, &done); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, done)
			}
			fmt.Fprintf(c.OutOrStdout(), "version %s is the intent now\n", printable(args[1]))
			return nil
		},
	)
	c.Flags().StringVar(&reason, "reason", "", "why it is right that so much goes; kept with the version")
	c.Flags().StringVar(&by, "by", "", "who confirms; your user name when left out")
	return c
}

// newNotification makes `ordain notification`.
func newNotification() *cobra.Command {
	r := &remote{}
	var all bool
	list := command(
		"list ENVIRONMENT",
		"List what nobody read yet, newest first",
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
		command(
			"clear ENVIRONMENT ID",
			"Mark one as read and take it off the list",
			mark(row{"read": true, "cleared": true}),
		),
	)
}
