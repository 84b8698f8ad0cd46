package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// person is who does something, and why.
type person struct{ by, reason string }

func (p *person) add(c *cobra.Command, why string) {
	c.Flags().StringVar(&p.reason, "reason", "", why)
	c.Flags().StringVar(&p.by, "by", "", "who does it; your user name when left out")
}

// body is the beginning of a request.
func (p *person) body() (row, error) {
	by := p.by
	if by == "" {
		by = userName()
	}
	switch {
	case p.reason == "":
		return nil, usageError{errors.New("say why with --reason; it is kept")}
	case by == "":
		return nil, usageError{errors.New("say who you are with --by")}
	}
	return row{"by": by, "reason": p.reason}, nil
}

// newRollback makes `ordain rollback`.
func newRollback() *cobra.Command {
	r := &remote{}
	var who person
	var revert bool
	c := &cobra.Command{
		Use:   "rollback ENVIRONMENT [VERSION]",
		Short: "Deploy an earlier version again, and block the commit that is deployed now",
		Long: "Deploy the content of an earlier version again, as a new version; without VERSION, of the last one before that was deployed.\n" +
			"The commit that was deployed is blocked: nothing deploys it again until `ordain git unblock`. A newer commit is deployed as usual.",
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
					return usageError{fmt.Errorf("%s is no version", printable(args[1]))}
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
	c.Flags().BoolVar(&revert, "revert", false, "also open a pull request at the forge that takes the commit back")
	r.add(c)
	return c
}

func showRollback(c *cobra.Command, done row) error {
	out := c.OutOrStdout()
	if back, ok := done["rolled_back"].(row); ok {
		fmt.Fprintf(
			out,
			"version %s is the intent now: the content of version %s\n",
			cell(done, "version"),
			cell(back, "to"),
		)
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
