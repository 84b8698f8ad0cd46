package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

func newVersions() *cobra.Command {
	r := &remote{}
	versions := r.group(
		"version",
		"Print the version of this program; list, release, confirm and compare versions of the intent",
		command("list ENVIRONMENT", "List versions", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/desiredstate?limit=50", nil, &rows); err != nil {
				return err
			}
			for _, one := range rows {
				one["origin"] = "commit"
				if one["pushed"] != nil {
					one["origin"] = "not from a commit"
				}
				if hold, ok := one["hold"].(row); ok && hold["held"] == true && r.format != "json" {
					one["status"] = "held: " + cell(hold, "text")
				}
			}
			return r.show(c, rows, "version", "status", "date", "total", "released", "origin")
		}),
		newVersionShow(r),
		newVersionConfirm(r),
		command("release ENVIRONMENT VERSION", "Make a version the active one",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], post, "/api/v2/desiredstate/"+escape(args[1])+"/promote", nil, nil)
			},
		),
		command("diff ENVIRONMENT FROM TO", "Compare two versions", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/desiredstate/diff/"+escape(args[1])+"/"+escape(args[2]), nil,
				&rows); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, rows)
			}
			byLine := lineDiffsOf(rows)
			for _, one := range rows {
				if attributes, ok := one["attributes"].(row); ok {
					one["attributes"] = changesLine(attributes)
				}
			}
			if err := r.show(c, rows, "resource_id", "status", "attributes"); err != nil {
				return err
			}
			return printLineDiffs(c.OutOrStdout(), byLine)
		}),
	)
	versions.RunE = func(c *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(c.OutOrStdout(), "ordain "+Version)
		return err
	}
	return versions
}

// newVersionShow makes `ordain version show`.
func newVersionShow(r *remote) *cobra.Command {
	return command("show ENVIRONMENT VERSION", "Show one version and, when it is held, what it would take away",
		func(c *cobra.Command, args []string) error {
			var rows []row
			number := escape(args[1])
			only := "/api/v2/desiredstate?limit=1&filter.version=ge:" + number + "&filter.version=le:" + number
			if err := r.in(c, args[0], get, only, nil, &rows); err != nil {
				return err
			}
			if len(rows) == 0 {
				return fmt.Errorf("there is no version %s in %s", printable(args[1]), printable(args[0]))
			}
			one := rows[0]
			if one["hold"] != nil {
				var hold row
				if err := r.in(c, args[0], get, "/api/v2/desiredstate/"+number+"/hold", nil, &hold); err != nil {
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
			if from, ok := one["pushed"].(row); ok {
				fmt.Fprintf(c.OutOrStdout(), "%-10s %s\n", "origin", cell(from, "description"))
			}
			if hold, ok := one["hold"].(row); ok {
				return r.showHold(c, hold)
			}
			return nil
		},
	)
}

// showHold prints why a version is held, and what it would take away.
func (r *remote) showHold(c *cobra.Command, hold row) error {
	out := c.OutOrStdout()
	if confirmed, ok := hold["confirmed"].(row); ok {
		fmt.Fprintf(out, "confirmed  by %s at %s: %s\n", cell(confirmed, "by"), cell(confirmed, "at"),
			cell(confirmed, "reason"))
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
	var who person
	c := command("confirm ENVIRONMENT VERSION",
		"Release a version that is held; `ordain version show` lists what it takes away",
		func(c *cobra.Command, args []string) error {
			body, err := who.body()
			if err != nil {
				return err
			}
			var done row
			if err := r.in(c, args[0], post, "/api/v2/desiredstate/"+escape(args[1])+"/confirm", body,
				&done); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, done)
			}
			fmt.Fprintf(c.OutOrStdout(), "version %s is active now\n", printable(args[1]))
			return nil
		},
	)
	who.add(c, "why so much may be taken away; kept with the version")
	return c
}

// newRollback makes `ordain rollback`.
func newRollback() *cobra.Command {
	r := &remote{}
	var who person
	var revert bool
	c := &cobra.Command{
		Use:   "rollback ENVIRONMENT [VERSION]",
		Short: "Deploy an earlier version again, and block the commit that is deployed now",
		Long: "Deploys the content of an earlier version again, as a new version; without VERSION, that of the\n" +
			"version that was deployed before. The commit that was deployed is blocked: nothing deploys it again\n" +
			"until `ordain git unblock`. A newer commit is deployed as usual.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError{errors.New("usage: ordain rollback ENVIRONMENT [VERSION]")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			body, err := who.body()
			if err != nil {
				return err
			}
			if len(args) > 1 {
				n, err := strconv.Atoi(args[1])
				if err != nil || n < 1 {
					return usageError{fmt.Errorf("%s is not a version number", printable(args[1]))}
				}
				body["version"] = n
			}
			body["revert"] = revert
			var done row
			if err := r.in(c, args[0], post, "/api/v2/rollback", body, &done); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, done)
			}
			return showRollback(c, done)
		},
	}
	who.add(c, "what is wrong with what is deployed; kept")
	c.Flags().BoolVar(&revert, "revert", false, "also open a pull request at the forge that reverts the commit")
	r.add(c)
	return c
}

func showRollback(c *cobra.Command, done row) error {
	out := c.OutOrStdout()
	if back, ok := done["rolled_back"].(row); ok {
		fmt.Fprintf(out, "version %s is active now: the content of version %s\n", cell(done, "version"),
			cell(back, "to"))
		if commit := cell(back, "blocked"); commit != "" {
			fmt.Fprintf(out, "commit %s is blocked\n", commit)
		}
	}
	if page := cell(done, "revert"); page != "" {
		fmt.Fprintf(out, "the revert is %s\n", page)
	}
	if problem := cell(done, "revert_problem"); problem != "" {
		fmt.Fprintf(c.ErrOrStderr(), "no pull request was opened: %s\n", printable(problem))
	}
	return nil
}
