package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// filterFlags choose resources for a command that acts on all that match.
type filterFlags struct {
	agents, types, statuses []string
}

func (f *filterFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&f.agents, "agent", nil, "only resources of this agent; may be repeated")
	flags.StringArrayVar(&f.types, "type", nil, "only resources of this type, such as fs::File; may be repeated")
	flags.StringArrayVar(&f.statuses, "status", nil,
		"only resources in this state, such as failed; with ! before it, not in it; may be repeated")
}

// none reports whether no filter was given.
func (f *filterFlags) none() bool { return len(f.agents)+len(f.types)+len(f.statuses) == 0 }

// filter is the filter as the API takes it.
func (f *filterFlags) filter() row {
	out := row{}
	if len(f.agents) > 0 {
		out["agent"] = row{"eq": f.agents}
	}
	if len(f.types) > 0 {
		out["resourceType"] = row{"eq": f.types}
	}
	status := row{}
	for _, s := range f.statuses {
		key := "eq"
		if rest, not := strings.CutPrefix(s, "!"); not {
			key, s = "neq", rest
		}
		list, _ := status[key].([]string)
		status[key] = append(list, s)
	}
	if len(status) > 0 {
		out["status"] = status
	}
	return out
}

// deployFiltered deploys what a filter matches, and prints it.
func (r *remote) deployFiltered(c *cobra.Command, env string, f filterFlags, method string) error {
	var matched []string
	body := row{"filter": f.filter(), "agent_trigger_method": method}
	if err := r.in(c, env, post, "/api/v2/deploy_filtered", body, &matched); err != nil {
		return err
	}
	if r.format == "json" {
		return r.showJSON(c, matched)
	}
	for _, id := range matched {
		fmt.Fprintln(c.OutOrStdout(), printable(id))
	}
	if len(matched) == 0 {
		fmt.Fprintln(c.ErrOrStderr(), "no resource matches, so nothing is deployed")
	}
	return nil
}
