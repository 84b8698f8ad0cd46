package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// newOverride makes `ordain override`.
func newOverride() *cobra.Command {
	r := &remote{}
	var all bool
	list := command("list ENVIRONMENT", "List overrides that last", func(c *cobra.Command, args []string) error {
		var rows, shown []row
		if err := r.in(c, args[0], get, "/api/v2/override", nil, &rows); err != nil {
			return err
		}
		for _, one := range rows {
			if all || one["lasts"] == true {
				shown = append(shown, one)
			}
		}
		return r.show(c, shown, "id", "created", "until", "by", "reason", "agents", "ended", "ended_by")
	})
	list.Flags().BoolVar(&all, "all", false, "also those that are over")
	return r.group(
		"override",
		"Let changes through maintenance windows and freezes",
		list,
		newOverrideStart(r),
		command("end ENVIRONMENT ID", "End an override before its time", func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], remove, "/api/v2/override/"+escape(args[1])+"?by="+escape(userName()), nil, nil)
		}),
		command("history ENVIRONMENT", "Who halted, paused and let through, newest first",
			func(c *cobra.Command, args []string) error {
				var rows []row
				if err := r.in(c, args[0], get, "/api/v2/interventions", nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "at", "by", "kind", "agent", "reason")
			},
		),
	)
}

// newOverrideStart makes `ordain override start`.
func newOverrideStart(r *remote) *cobra.Command {
	var who person
	var agents string
	var lasts time.Duration
	c := command("start ENVIRONMENT", "Let changes through for a while, at most 24 hours",
		func(c *cobra.Command, args []string) error {
			body, err := who.body()
			if err != nil {
				return err
			}
			if lasts < time.Minute || lasts > 24*time.Hour {
				return usageError{fmt.Errorf("--for %s: an override lasts a minute to 24 hours", lasts)}
			}
			body["minutes"] = int(lasts / time.Minute)
			if agents != "" {
				var names []string
				for name := range strings.SplitSeq(agents, ",") {
					names = append(names, strings.TrimSpace(name))
				}
				body["agents"] = names
			}
			var made row
			if err := r.in(c, args[0], put, "/api/v2/override", body, &made); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, made)
			}
			fmt.Fprintf(c.OutOrStdout(),
				"changes are let through until %s; `ordain override end %s %s` ends it\n", cell(made, "until"),
				printable(args[0]), cell(made, "id"))
			return nil
		},
	)
	who.add(c, "why changes cannot wait; kept")
	c.Flags().
		StringVar(&agents, "agents", "", "names of agents, or patterns such as web*, with commas between; all when left out")
	c.Flags().DurationVar(&lasts, "for", time.Hour, "how long, such as 30m or 4h")
	return c
}
