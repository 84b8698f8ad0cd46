package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newCompileReport() *cobra.Command {
	r := &remote{}
	return r.group("compile-report", "What compiles did",
		command("list ENVIRONMENT", "List compile reports", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/compilereport?limit=50", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "id", "requested", "success", "version", "metadata.type", "metadata.message")
		}),
		command("show ENVIRONMENT ID", "Show one report with its stages", func(c *cobra.Command, args []string) error {
			var one row
			if err := r.in(c, args[0], get, "/api/v2/compilereport/"+escape(args[1]), nil, &one); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, one)
			}
			if newer := cell(one, "metadata.superseded_by"); newer != "" {
				fmt.Fprintln(c.OutOrStdout(), "Cancelled for a newer commit: "+newer)
			}
			if by := cell(one, "metadata.cancelled_by"); by != "" {
				fmt.Fprintln(c.OutOrStdout(), "Cancelled by "+by+": "+cell(one, "metadata.cancelled_why"))
			}
			stages, _ := one["reports"].([]any)
			for _, s := range stages {
				stage, _ := s.(row)
				fmt.Fprintf(c.OutOrStdout(), "%s (%s)\n", cell(stage, "name"), cell(stage, "returncode"))
				for _, stream := range []string{"outstream", "errstream"} {
					text, _ := stage[stream].(string)
					for line := range strings.Lines(text) {
						fmt.Fprintln(c.OutOrStdout(), "  "+printable(strings.TrimRight(line, "\n")))
					}
				}
			}
			return nil
		}),
		newCancelCompile(r),
	)
}
