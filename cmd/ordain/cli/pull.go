package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/internal/diag"
)

// newPull makes `ordain pull`.
func newPull() *cobra.Command {
	r := &remote{}
	number := func(text string) (string, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return "", usageError{fmt.Errorf("%q is not the number of a pull request", printable(text))}
		}
		return "/api/v2/pull/" + strconv.Itoa(n), nil
	}
	var by string
	approve := command(
		"approve ENVIRONMENT NUMBER COMMIT",
		"Allow the code of exactly this commit to run for a preview",
		func(c *cobra.Command, args []string) error {
			path, err := number(args[1])
			if err != nil {
				return err
			}
			if by == "" {
				by = userName()
			}
			if by == "" {
				return usageError{errors.New("say who you are with --by")}
			}
			var done row
			if err := r.in(c, args[0], post, path+"/approve", row{"commit": args[2], "by": by}, &done); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, done)
			}
			fmt.Fprintf(c.OutOrStdout(), "approved %s; its preview is computed\n", printable(args[2]))
			return nil
		},
	)
	approve.Long = "Allows the code of exactly this commit of a pull request to run for a preview. Its model,\n" +
		"plug-ins and handlers run on the server, as those of the environment's own commits do, so review the\n" +
		"changes first. Commits that are pushed later need another approval."
	approve.Flags().StringVar(&by, "by", "", "who approves (default: your user name)")
	return r.group(
		"pull",
		"Pull and merge requests, and what they would change",
		command("list ENVIRONMENT", "List pull requests, open ones first", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/pull", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "number", "state", "preview", "author", "head", "title")
		}),
		command("show ENVIRONMENT NUMBER", "Show what a pull request would change, as its comment does",
			func(c *cobra.Command, args []string) error {
				path, err := number(args[1])
				if err != nil {
					return err
				}
				var one row
				if err := r.in(c, args[0], get, path, nil, &one); err != nil {
					return err
				}
				if r.format == "json" {
					return r.showJSON(c, one)
				}
				out := c.OutOrStdout()
				fmt.Fprintf(out, "#%s %s\n%s, by %s, at %s: %s\n", cell(one, "number"), cell(one, "title"),
					cell(one, "state"), cell(one, "author"), cell(one, "head"), cell(one, "preview"))
				text, _ := one["text"].(string)
				fmt.Fprint(out, "\n"+diag.PlainText(text))
				return nil
			},
		),
		command("preview ENVIRONMENT NUMBER", "Compute the preview of a pull request, even if it has one",
			func(c *cobra.Command, args []string) error {
				path, err := number(args[1])
				if err != nil {
					return err
				}
				return r.in(c, args[0], post, path+"/preview", nil, nil)
			},
		),
		approve,
	)
}

// newForge makes `ordain forge`.
func newForge() *cobra.Command {
	r := &remote{}
	return r.group(
		"forge",
		"What the server sends to the forge of an environment",
		command("outbox ENVIRONMENT", "List what waits to be sent, what was sent, and what failed for good",
			func(c *cobra.Command, args []string) error {
				var rows []row
				if err := r.in(c, args[0], get, "/api/v2/forge/outbox", nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "id", "state", "topic", "attempts", "next", "problem")
			},
		),
		command("retry ENVIRONMENT ID", "Send something again that failed for good",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], post, "/api/v2/forge/outbox/"+escape(args[1])+"/retry", nil, nil)
			},
		),
	)
}
