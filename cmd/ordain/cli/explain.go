package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/docs/errors"
)

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [code]",
		Short: "Explain an error or warning by its code",
		Long: "Prints what a code such as E0202 means, with an example and how to fix it.\n" +
			"Without a code, lists all codes.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			w := c.OutOrStdout()
			if len(args) == 0 {
				for _, code := range errors.Codes() {
					fmt.Fprintln(w, errors.Title(code))
				}
				return nil
			}
			text, ok := errors.Page(args[0])
			if !ok {
				return fmt.Errorf("there is no code %s; `ordain explain` lists them", strings.ToUpper(args[0]))
			}
			_, err := fmt.Fprint(w, readable(text, colourful(w)))
			return err
		},
	}
}

// readable formats a page for a terminal: titles are bold, and code is indented.
func readable(page string, colour bool) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
			continue
		case fenced && line != "":
			line = "    " + line
		case !fenced && strings.HasPrefix(line, "#"):
			if line = strings.TrimLeft(line, "# "); colour {
				line = "\x1b[1m" + line + "\x1b[0m"
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
