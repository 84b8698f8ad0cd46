package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

const (
	remoteAgentPath = "/api/v2/remote_agent"
	joinTokenPath   = "/api/v2/agent_token"
)

// remoteState says in a few words what a remote agent does.
func remoteState(a row) string {
	switch {
	case a["state"] != "joined":
		return cell(a, "state") + " " + cell(a, "ended")
	case a["connected"] == true:
		return "connected since " + cell(a, "since")
	case a["since"] == nil:
		return "never connected"
	}
	return "not connected since " + cell(a, "since")
}

// withRemotes adds to rows of agents what the server knows of the remote ones, which may have no resources yet.
func withRemotes(rows, remotes []row) []row {
	by := map[any]row{}
	for _, one := range rows {
		one["remote"] = ""
		by[one["name"]] = one
	}
	for _, a := range remotes {
		one := by[a["name"]]
		if one == nil {
			one = row{"name": a["name"], "status": "", "paused": "", "target": ""}
			rows = append(rows, one)
		}
		one["remote"] = remoteState(a)
		for _, key := range []string{"program", "certificate_expires", "waiting", "problem"} {
			one[key] = a[key]
		}
	}
	return rows
}

// remoteAgents makes the commands about remote agents.
func remoteAgents(r *remote) []*cobra.Command {
	return []*cobra.Command{
		command("revoke ENVIRONMENT NAME", "Disconnect a remote agent, until it joins with a new token",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], post, remoteAgentPath+"/"+escape(args[1])+"/revoke", nil, nil)
			}),
		command("remove ENVIRONMENT NAME", "Revoke a remote agent and forget it",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], remove, remoteAgentPath+"/"+escape(args[1]), nil, nil)
			}),
		joinTokens(r),
	}
}

func joinTokens(r *remote) *cobra.Command {
	var expire string
	create := command("create ENVIRONMENT NAME", "Make a token with which the agent NAME joins, once, and print it",
		func(c *cobra.Command, args []string) error {
			body := row{"agent": args[1]}
			if expire != "" {
				seconds, err := lifetime(expire)
				if err != nil {
					return err
				}
				body["expire"] = seconds
			}
			var made row
			if err := r.in(c, args[0], post, joinTokenPath, body, &made); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, made)
			}
			fmt.Fprintln(c.OutOrStdout(), made["token"])
			return nil
		})
	create.Flags().StringVar(&expire, "expire", "", "when it expires, such as 30m or 7d; an hour by default")
	g := &cobra.Command{Use: "token", Short: "Tokens with which remote agents join"}
	g.AddCommand(create,
		command("list ENVIRONMENT", "List join tokens, also those that ended lately",
			func(c *cobra.Command, args []string) error {
				var rows []row
				if err := r.in(c, args[0], get, joinTokenPath, nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "id", "agent", "state", "made", "made_by", "expires", "used", "used_from")
			}),
		command("revoke ENVIRONMENT ID", "Revoke a join token that was not used",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], remove, joinTokenPath+"/"+escape(args[1]), nil, nil)
			}))
	return g
}
