package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// remoteProvisioners makes the commands about provisioners that run elsewhere than in the server.
func remoteProvisioners() []*cobra.Command {
	r := &remote{}
	list := &cobra.Command{
		Use: "list [PROJECT]", Short: "List the provisioners of a project, or of all, that run elsewhere",
		Args: cobra.MaximumNArgs(1),
	}
	list.RunE = func(c *cobra.Command, args []string) error {
		path := sharedCatalogue
		if len(args) == 1 {
			var err error
			if path, err = r.provisioners(c, args[0]); err != nil {
				return err
			}
		}
		var rows []row
		if err := r.call(c, get, path+"/provisioners", nil, &rows); err != nil {
			return err
		}
		return r.show(c, rows, "name", "program", "room", "running", "joined", "seen", "revoked",
			"certificate_expires", "problem")
	}
	revoke := command("revoke PROJECT NAME", "Turn a provisioner away, until it joins with a new token",
		func(c *cobra.Command, args []string) error {
			path, err := r.provisioners(c, args[0])
			if err != nil {
				return err
			}
			return r.call(c, post, path+"/provisioners/"+escape(args[1])+"/revoke", nil, nil)
		})
	all := []*cobra.Command{list, revoke, provisionerTokens(r)}
	for _, c := range all {
		r.add(c)
	}
	return all
}

// provisioners returns the path of the catalogue of a project, below which its provisioners are.
func (r *remote) provisioners(c *cobra.Command, project string) (string, error) {
	id, err := r.projectID(c, project)
	return sharedCatalogue + "/project/" + id, err
}

func provisionerTokens(r *remote) *cobra.Command {
	const tokens = "/provisioner_tokens"
	listed := func(c *cobra.Command, project string) (path string, rows []row, err error) {
		if path, err = r.provisioners(c, project); err == nil {
			err = r.call(c, get, path+tokens, nil, &rows)
		}
		return path, rows, err
	}
	var expire string
	create := command("create PROJECT NAME", "Make a token with which the provisioner NAME joins, once, and print it",
		func(c *cobra.Command, args []string) error {
			body := row{"provisioner": args[1]}
			if expire != "" {
				seconds, err := lifetime(expire)
				if err != nil {
					return err
				}
				body["expire"] = seconds
			}
			path, err := r.provisioners(c, args[0])
			if err != nil {
				return err
			}
			var made row
			if err := r.call(c, post, path+tokens, body, &made); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, made)
			}
			fmt.Fprintln(c.OutOrStdout(), made["token"])
			return nil
		})
	create.Flags().StringVar(&expire, "expire", "", "when it expires, such as 30m or 7d; an hour by default")
	g := &cobra.Command{Use: "token", Short: "Tokens with which provisioners join"}
	g.AddCommand(
		create,
		command("list PROJECT", "List join tokens, also those that ended lately",
			func(c *cobra.Command, args []string) error {
				_, rows, err := listed(c, args[0])
				if err != nil {
					return err
				}
				return r.show(c, rows, "id", "provisioner", "state", "made", "made_by", "expires", "used")
			}),
		command(
			"revoke PROJECT TOKEN",
			"Revoke join tokens that were not used: the one with this id, or all of a name",
			func(c *cobra.Command, args []string) error {
				path, rows, err := listed(c, args[0])
				if err != nil {
					return err
				}
				found := false
				for _, one := range rows {
					if one["id"] != args[1] && (one["provisioner"] != args[1] || one["state"] != "waiting") {
						continue
					}
					found = true
					if err := r.call(c, remove, path+tokens+"/"+cell(one, "id"), nil, nil); err != nil {
						return err
					}
				}
				if !found {
					return fmt.Errorf(
						"the project has no token %s that waits; see ordain provisioner token list",
						args[1],
					)
				}
				return nil
			},
		),
	)
	return g
}
