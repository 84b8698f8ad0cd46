package cli

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// newAudit makes `ordain audit`.
func newAudit() *cobra.Command {
	r := &remote{}
	var environment, actor, verb, outcome string
	var limit int
	list := command("list", "Show who changed what, newest first", func(c *cobra.Command, _ []string) error {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		for name, value := range map[string]string{"actor": actor, "verb": verb, "outcome": outcome} {
			if value != "" {
				query.Set("filter."+name, value)
			}
		}
		var rows []row
		if err := r.audit(c, environment, "?"+query.Encode(), &rows); err != nil {
			return err
		}
		return r.show(
			c,
			rows,
			"at",
			"actor",
			"verb",
			"environment_name",
			"subject",
			"before",
			"after",
			"reason",
			"outcome",
		)
	})
	list.Flags().StringVar(&actor, "actor", "", "only what people with this in their name did")
	list.Flags().StringVar(&verb, "verb", "", "only verbs with this in their name, such as environment.halt")
	list.Flags().StringVar(&outcome, "outcome", "", "done, refused or failed")
	list.Flags().IntVar(&limit, "limit", 100, "how many")
	var after int64
	export := command(
		"export",
		"Print the audit trail as JSON lines, oldest first",
		func(c *cobra.Command, _ []string) error {
			out := json.NewEncoder(c.OutOrStdout())
			out.SetEscapeHTML(false)
			for {
				var rows []row
				err := r.audit(c, environment, "/export?after="+strconv.FormatInt(after, 10), &rows)
				if err != nil || len(rows) == 0 {
					return err
				}
				for _, one := range rows {
					if err := out.Encode(one); err != nil {
						return err
					}
				}
				last, _ := rows[len(rows)-1]["id"].(float64)
				after = int64(last)
			}
		},
	)
	export.Flags().Int64Var(&after, "after", 0, "begin after the entry with this id, to go on with an earlier export")
	group := r.group("audit", "Who changed what", list, export)
	group.PersistentFlags().
		StringVar(&environment, "environment", "", "of one environment; default: of the whole server")
	return group
}

// audit asks for a part of the audit trail: of an environment, or of the whole server when none is named.
func (r *remote) audit(c *cobra.Command, environment, path string, rows *[]row) error {
	if environment == "" {
		return r.call(c, get, "/api/v2/audit"+path, nil, rows)
	}
	return r.in(c, environment, get, "/api/v2/environment/%s/audit"+path, nil, rows)
}
