package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newPromote makes `ordain promote`.
func newPromote() *cobra.Command {
	r := &remote{}
	var who person
	c := &cobra.Command{
		Use:   "promote ENVIRONMENT COMMIT",
		Short: "Promote the waiting commit to an environment now, without waiting for its gates",
		Long: "Promotes the commit that is deployed in the environment that ENVIRONMENT follows, without waiting\n" +
			"for the gates of its settings. It is verified like any commit, and one that was rolled back or is\n" +
			"blocked cannot be promoted. `ordain git promotions` shows which commit waits, and for what.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{errors.New("usage: ordain promote ENVIRONMENT COMMIT --reason WHY")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			done, err := r.postDecision(c, &who, args, "/api/v2/promote")
			if err != nil || r.format == "json" {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s of %s is promoted and is being compiled\n", cell(done, "commit"),
				cell(done, "source_name"))
			return nil
		},
	}
	who.add(c, "why it does not wait for its gates; kept")
	r.add(c)
	return c
}

// postDecision sends a person's decision, about a commit if args names one. With
// -o json, it prints the answer.
func (r *remote) postDecision(c *cobra.Command, who *person, args []string, path string) (done row, err error) {
	body, err := who.body()
	if err != nil {
		return nil, err
	}
	if len(args) > 1 {
		body["commit"] = args[1]
	}
	if err := r.in(c, args[0], post, path, body, &done); err != nil {
		return nil, err
	}
	if r.format == "json" {
		return done, r.showJSON(c, done)
	}
	return done, nil
}

// newGitPromotions makes the commands of `ordain git` about promotions.
func newGitPromotions(r *remote) []*cobra.Command {
	decision := func(use, short, why, path string) *cobra.Command {
		var who person
		c := command(use, short, func(c *cobra.Command, args []string) error {
			done, err := r.postDecision(c, &who, args, path)
			if err != nil || r.format == "json" {
				return err
			}
			return showFollowing(c, done)
		})
		who.add(c, why)
		return c
	}
	list := command(
		"promotions ENVIRONMENT",
		"Show what an environment follows, which commit waits for which gates, and past promotions",
		func(c *cobra.Command, args []string) error {
			var following row
			if err := r.in(c, args[0], get, "/api/v2/git/promotions", nil, &following); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, following)
			}
			if err := showFollowing(c, following); err != nil {
				return err
			}
			return r.show(c, rowsOf(following["promotions"]), "commit", "subject", "source_version", "state",
				"version", "text")
		},
	)
	return []*cobra.Command{
		list,
		decision("approve ENVIRONMENT COMMIT", "Approve the waiting commit, and no other",
			"why it may be deployed; kept", "/api/v2/git/promotions/approve"),
		decision("pause ENVIRONMENT", "Promote nothing until promotions are resumed", "why nothing is promoted; kept",
			"/api/v2/git/promotions/pause"),
		decision("resume ENVIRONMENT", "Resume promotions", "why it goes on; kept", "/api/v2/git/promotions/resume"),
	}
}

// rowsOf returns the objects of a list in an answer.
func rowsOf(list any) (rows []row) {
	items, _ := list.([]any)
	for _, item := range items {
		if one, ok := item.(row); ok {
			rows = append(rows, one)
		}
	}
	return rows
}

// showFollowing prints what an environment follows, and the commit that waits.
func showFollowing(c *cobra.Command, f row) error {
	out := c.OutOrStdout()
	if names := printable(namesOf(f["followers"])); names != "" {
		fmt.Fprintf(out, "followed by  %s\n", names)
	}
	if cell(f, "follows") == "" {
		fmt.Fprintln(out, "follows      its branch")
		return nil
	}
	fmt.Fprintf(out, "follows      %s\n", cell(f, "follows"))
	if paused, ok := f["paused"].(row); ok {
		fmt.Fprintf(out, "paused       by %s: %s\n", cell(paused, "by"), cell(paused, "reason"))
	}
	if idle := cell(f, "idle"); idle != "" {
		fmt.Fprintf(out, "waits        nothing: %s\n", idle)
		return nil
	}
	for _, p := range rowsOf(f["promotions"]) {
		if cell(p, "state") != "waiting" {
			continue
		}
		fmt.Fprintf(out, "waits        %s %s\n", cell(p, "commit"), cell(p, "subject"))
		for _, g := range rowsOf(p["gates"]) {
			state := "holds"
			if open, _ := g["open"].(bool); open {
				state = "open"
			}
			fmt.Fprintf(out, "  %-9s  %s: %s\n", cell(g, "gate"), state, cell(g, "text"))
		}
	}
	return nil
}

func namesOf(list any) string {
	var names []string
	items, _ := list.([]any)
	for _, item := range items {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
