package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newStanding makes `ordain standing`.
func newStanding() *cobra.Command {
	r := &remote{}
	c := command(
		"standing ENVIRONMENT",
		"Say what is deployed, what the newest commit is, and why they differ",
		func(c *cobra.Command, args []string) error {
			var now row
			if err := r.in(c, args[0], get, "/api/v2/standing", nil, &now); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, now)
			}
			out := c.OutOrStdout()
			fmt.Fprintf(out, "%-9s  %s\n", "standing", cell(now, "kind"))
			for _, what := range []string{"deployed", "tip"} {
				one, _ := now[what].(row)
				if one == nil {
					fmt.Fprintf(out, "%-9s  %s\n", what, "nothing yet")
					continue
				}
				text := cell(one, "commit")
				text = text[:min(7, len(text))]
				if version := cell(one, "version"); version != "" {
					text = "version " + version + " " + text
				}
				if author := cell(one, "author"); author != "" {
					text += fmt.Sprintf(" %q by %s", cell(one, "subject"), author)
				}
				fmt.Fprintf(out, "%-9s  %s\n", what, printable(text))
			}
			reasons, _ := now["why"].([]any)
			for _, reason := range reasons {
				one, _ := reason.(row)
				fmt.Fprintf(out, "%-9s  %s\n", "why", cell(one, "text"))
				if advice := cell(one, "advice"); advice != "" {
					fmt.Fprintf(out, "%-9s  %s\n", "", advice)
				}
			}
			return nil
		},
	)
	r.add(c)
	return c
}

// newCancelCompile makes `ordain compile-report cancel`.
func newCancelCompile(r *remote) *cobra.Command {
	var who person
	c := command("cancel ENVIRONMENT ID", "Cancel a compile that waits or runs",
		func(c *cobra.Command, args []string) error {
			body, err := who.body()
			if err != nil {
				return err
			}
			var one row
			path := "/api/v2/compilereport/" + escape(args[1]) + "/cancel"
			if err := r.in(c, args[0], post, path, body, &one); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, one)
			}
			if cell(one, "completed") == "" {
				fmt.Fprintln(c.OutOrStdout(), "It is being cancelled; what is deployed stays.")
				return nil
			}
			fmt.Fprintln(c.OutOrStdout(), "It is cancelled; what is deployed stays.")
			return nil
		},
	)
	who.add(c, "why it is cancelled; kept")
	return c
}
