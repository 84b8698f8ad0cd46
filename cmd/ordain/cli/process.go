package cli

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// newProcess makes `ordain process`.
func newProcess() *cobra.Command {
	r := &remote{}
	var environment, state, name string
	var limit int
	// call sends a request about the processes of an environment, or of the whole server when none is named.
	call := func(c *cobra.Command, method, path string, out any) error {
		if environment == "" {
			return r.call(c, method, "/api/v2/process"+path, nil, out)
		}
		return r.in(c, environment, method, "/api/v2/environment/%s/process"+path, nil, out)
	}
	list := command("list", "List processes, newest first", func(c *cobra.Command, _ []string) error {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		if state != "" {
			query.Set("filter.state", state)
		}
		if name != "" {
			query.Set("filter.name", name)
		}
		var rows []row
		if err := call(c, get, "?"+query.Encode(), &rows); err != nil {
			return err
		}
		return r.show(c, rows, "id", "state", "name", "resource_type", "resource_id", "environment_name", "attempts",
			"waits", "next", "reason", "problem")
	})
	list.Long = "Lists recorded work: what runs, what waits and for what, and what ended and why. Dead processes\n" +
		"wait for a person: retry runs one again from the step at which it failed, cancel gives it up."
	list.Flags().StringVar(&state, "state", "", "waiting, running, done, cancelled or dead")
	list.Flags().StringVar(&name, "name", "", "only processes with this in their name, such as forge.send")
	list.Flags().IntVar(&limit, "limit", 100, "how many")
	show := command("show ID", "Show a process", func(c *cobra.Command, args []string) error {
		var one row
		if err := call(c, get, "/"+escape(args[0]), &one); err != nil {
			return err
		}
		if r.format == "json" {
			return r.showJSON(c, one)
		}
		for _, field := range []string{
			"id", "name", "resource_type", "resource_id", "environment_name", "state", "waits", "waits_for", "attempts",
			"max_attempts", "phase", "reason", "problem", "made_by", "made", "begun", "next", "deadline", "ended",
			"worker",
		} {
			if text := cell(one, field); text != "" {
				fmt.Fprintf(c.OutOrStdout(), "%-16s  %s\n", field, text)
			}
		}
		return nil
	})
	verb := func(use, short string) *cobra.Command {
		return command(use+" ID", short, func(c *cobra.Command, args []string) error {
			return call(c, post, "/"+escape(args[0])+"/"+use, nil)
		})
	}
	group := r.group("process", "Recorded work: what runs, what waits, and what died", list, show,
		verb("retry", "Run a dead process again, or a waiting one at once"),
		verb("cancel", "End a process that waits, runs or died"))
	group.PersistentFlags().StringVar(&environment, "environment", "",
		"of one environment; default: of the whole server, which only administrators may see")
	return group
}
