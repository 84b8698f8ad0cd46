package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newGit makes `ordain git`.
func newGit() *cobra.Command {
	r := &remote{}
	c := r.group(
		"git",
		"Commits of an environment: what became of them, and which are refused",
		command("status ENVIRONMENT", "Say how it goes between an environment and its repository",
			func(c *cobra.Command, args []string) error {
				var git struct {
					Repository string `json:"repository"`
					Branch     string `json:"branch"`
					State      row    `json:"state"`
				}
				if err := r.in(c, args[0], get, "/api/v2/git", nil, &git); err != nil {
					return err
				}
				if r.format == "json" {
					return r.showJSON(c, git)
				}
				out := c.OutOrStdout()
				fmt.Fprintf(out, "repository  %s %s\n", printable(git.Repository), printable(git.Branch))
				if git.State == nil {
					fmt.Fprintln(out, "state       nothing is known yet")
					return nil
				}
				for _, name := range []string{"kind", "commit", "since", "message", "advice"} {
					if text := cell(git.State, name); text != "" {
						fmt.Fprintf(out, "%-10s  %s\n", name, text)
					}
				}
				return nil
			},
		),
		command("commits ENVIRONMENT", "List the newest commits, and what became of them",
			func(c *cobra.Command, args []string) error {
				var rows []row
				if err := r.in(c, args[0], get, "/api/v2/git/commits", nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "commit", "author", "subject", "signer", "requested", "success", "version",
					"version_status")
			},
		),
		newGitAccept(r),
		command("blocks ENVIRONMENT", "List the commits that were taken back",
			func(c *cobra.Command, args []string) error {
				var rows []row
				if err := r.in(c, args[0], get, "/api/v2/git/blocks", nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "commit", "at", "by", "reason")
			},
		),
		newGitUnblock(r),
	)
	c.AddCommand(newGitPromotions(r)...)
	return c
}

// newGitUnblock makes `ordain git unblock`.
func newGitUnblock(r *remote) *cobra.Command {
	var who person
	c := command(
		"unblock ENVIRONMENT COMMIT",
		"Free a commit that was taken back, and compile what the branch points to",
		func(c *cobra.Command, args []string) error {
			body, err := who.body()
			if err != nil {
				return err
			}
			body["commit"] = args[1]
			var freed row
			if err := r.in(c, args[0], post, "/api/v2/git/unblock", body, &freed); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, freed)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is free; what the branch points to is being compiled\n",
				cell(freed, "commit"))
			return nil
		},
	)
	who.add(c, "why it may be deployed after all; kept")
	return c
}

// newGitAccept makes `ordain git accept`.
func newGitAccept(r *remote) *cobra.Command {
	var who person
	c := command("accept ENVIRONMENT COMMIT", "Let a commit through that rewrites history",
		func(c *cobra.Command, args []string) error {
			body, err := who.body()
			if err != nil {
				return err
			}
			body["commit"] = args[1]
			var made row
			if err := r.in(c, args[0], post, "/api/v2/git/accept", body, &made); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, made)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is accepted and is being compiled\n", cell(made, "commit"))
			return nil
		},
	)
	who.add(c, "why history was rewritten; kept")
	return c
}
