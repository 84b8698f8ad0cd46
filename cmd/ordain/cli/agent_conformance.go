package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/server/agent/conformance"
)

// newAgentConformance makes `ordain agent conformance`, which needs no server.
func newAgentConformance() *cobra.Command {
	var only []string
	var patience time.Duration
	var verbose, list bool
	c := &cobra.Command{
		Use:   "conformance -- PROGRAM [ARGUMENT]...",
		Short: "Check that a program is an agent as docs/agent-protocol.md says",
		Long: "Plays the agent server for a program, and checks what the program does. It is started with the\n" +
			"join token in ORDAIN_JOIN_TOKEN, and with the folder in which it may keep files in\n" +
			"ORDAIN_AGENT_DIR. {dir} in an argument stands for that folder too, and {work} for the one in\n" +
			"which the suite's handler writes. When the program is started again, it has to connect with what\n" +
			"it kept.",
		Example: "  ordain agent conformance -- ordain agent --state-dir {dir} --allow-write {work}\n" +
			"  ordain agent conformance --only ping,content -- python3 agent.py",
		RunE: func(c *cobra.Command, args []string) error {
			if list {
				return printChecks(c.OutOrStdout(), conformance.Checks(), false)
			}
			if len(args) == 0 {
				return usageError{fmt.Errorf("usage: ordain agent %s", c.Use)}
			}
			cfg := conformance.Config{Program: args, Only: only, Patience: patience}
			if verbose {
				cfg.Output = c.ErrOrStderr()
			}
			cfg.Report = func(r conformance.Result) {
				if verbose {
					fmt.Fprintf(c.ErrOrStderr(), "== %s: %s\n", r.Name, outcome(r))
				}
			}
			results, err := conformance.Run(c.Context(), cfg)
			if err != nil {
				return err
			}
			if err := printChecks(c.OutOrStdout(), results, true); err != nil {
				return err
			}
			failed := 0
			for _, r := range results {
				if r.Failed != "" {
					failed++
				}
			}
			fmt.Fprintf(c.OutOrStdout(), "%d of %d checks passed.\n", len(results)-failed, len(results))
			if failed > 0 {
				return errPrinted
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&only, "only", nil, "names of checks to run; may be repeated")
	c.Flags().DurationVar(&patience, "patience", 30*time.Second, "how long the program may take for a step")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "print what the program prints, on standard error")
	c.Flags().BoolVar(&list, "list", false, "list the checks, and run none")
	return c
}

func outcome(r conformance.Result) string {
	if r.Failed != "" {
		return "FAILED"
	}
	return "passed"
}

func printChecks(to io.Writer, results []conformance.Result, ran bool) error {
	w := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	for _, r := range results {
		if !ran {
			fmt.Fprintf(w, "%s\t%s\n", r.Name, r.About)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", outcome(r), r.Name, r.Took.Round(time.Millisecond), r.About)
		if r.Failed != "" {
			fmt.Fprintf(w, "\t\t\t%s\n", printable(r.Failed))
		}
	}
	return w.Flush()
}
