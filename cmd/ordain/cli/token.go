package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// newToken makes `ordain token`.
func newToken() *cobra.Command {
	r := &remote{}
	return r.group("token", "Tokens, for programs: your own, those of environments, those of CI jobs",
		tokenCreate(r),
		command("list", "List your own tokens, the newest first", func(c *cobra.Command, _ []string) error {
			var rows []row
			if err := r.call(c, get, "/api/v2/token", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "id", "name", "roles", "project", "environment", "tag", "expires", "last_used")
		}),
		command("revoke TOKEN", "Revoke one of your own tokens; TOKEN is its name or its id",
			func(c *cobra.Command, args []string) error {
				var rows []row
				if err := r.call(c, get, "/api/v2/token", nil, &rows); err != nil {
					return err
				}
				id, err := named(rows, args[0], "token")
				if err != nil {
					return err
				}
				return r.call(c, remove, "/api/v2/token/"+id, nil, nil)
			}),
		environmentTokens(r),
		tokenExchange(r),
	)
}

// named returns the id of the row with a name or an id.
func named(rows []row, name, what string) (string, error) {
	i := slices.IndexFunc(rows, func(one row) bool { return one["name"] == name || one["id"] == name })
	if i < 0 {
		return "", fmt.Errorf("there is no %s %s", what, name)
	}
	return fmt.Sprint(rows[i]["id"]), nil
}

// lifetime reads a time such as 12h or 30d, in seconds.
func lifetime(text string) (int, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		text = days + "h"
		d, err := time.ParseDuration(text)
		if err == nil && d > 0 {
			return int(24 * d.Seconds()), nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return int(d.Seconds()), nil
	}
	return 0, usageError{fmt.Errorf("%q is no time; it looks like 12h or 30d", text)}
}

func tokenCreate(r *remote) *cobra.Command {
	var roles []string
	var project, environment, tag, expire string
	c := command("create NAME", "Make a token of your own, and print it: it is not shown again",
		func(c *cobra.Command, args []string) error {
			seconds, err := lifetime(expire)
			if err != nil {
				return err
			}
			where := &holder{project: project, environment: environment}
			if err := where.resolve(c, r); err != nil {
				return err
			}
			body := row{"name": args[0], "roles": roles, "expire": seconds, "tag": tag}
			if where.environment != "" {
				body["environment"] = where.environment
			}
			if where.project != "" {
				body["project"] = where.project
			}
			var made row
			if err := r.call(c, post, "/api/v2/token", body, &made); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, made)
			}
			fmt.Fprintln(c.OutOrStdout(), made["token"])
			return nil
		})
	c.Flags().StringSliceVar(&roles, "role", nil, "what it may do, at most: a role; may be repeated")
	c.Flags().StringVar(&expire, "expire", "30d", "when it expires, such as 12h or 30d")
	c.Flags().StringVar(&project, "project", "", "only in this project")
	c.Flags().StringVar(&environment, "environment", "", "only in this environment")
	c.Flags().StringVar(&tag, "tag", "", "only in environments with this tag")
	_ = c.MarkFlagRequired("role")
	return c
}

func environmentTokens(r *remote) *cobra.Command {
	const path = "/api/v2/environment_auth"
	var clients []string
	var idempotent bool
	var expire string
	create := command("create ENVIRONMENT", "Make a token for clients of an environment, and print it",
		func(c *cobra.Command, args []string) error {
			body := row{"client_types": clients, "idempotent": idempotent}
			if expire != "" {
				seconds, err := lifetime(expire)
				if err != nil {
					return err
				}
				body["expire"] = seconds
			}
			var text string
			if err := r.in(c, args[0], post, path, body, &text); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), text)
			return nil
		})
	create.Flags().StringSliceVar(&clients, "client", []string{"api"}, "api, compiler or agent; may be repeated")
	create.Flags().BoolVar(&idempotent, "idempotent", false,
		"the same token whenever it is asked for; it never expires")
	create.Flags().StringVar(&expire, "expire", "", "when it expires, such as 12h or 30d; never by default")
	g := &cobra.Command{Use: "environment", Short: "Tokens of an environment, for clients such as its compiler"}
	g.AddCommand(create,
		command("list ENVIRONMENT", "List the tokens of an environment", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "jti", "client_types", "created_by", "issued_at", "expires_at", "revoked_at",
				"last_used")
		}),
		command("revoke ENVIRONMENT JTI", "Revoke a token of an environment",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], remove, path+"/"+escape(args[1]), nil, nil)
			}))
	return g
}

func tokenExchange(r *remote) *cobra.Command {
	var variable, trust string
	c := command("exchange", "Exchange the identity token of this CI job for a token of the server, and print it",
		func(c *cobra.Command, _ []string) error {
			identity := os.Getenv(variable)
			if identity == "" {
				return usageError{errors.New("the variable " + variable + " holds no identity token")}
			}
			var got row
			body := row{"token": identity, "trust": trust}
			if err := r.call(c, post, "/api/v2/token/exchange", body, &got); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), got["token"])
			return nil
		})
	c.Flags().StringVar(&variable, "variable", "ORDAIN_ID_TOKEN", "the variable that holds the identity token")
	c.Flags().StringVar(&trust, "trust", "", "the name of the trust, if several accept the token")
	return c
}

// newTrust makes `ordain trust`.
func newTrust() *cobra.Command {
	r := &remote{}
	list := func(c *cobra.Command, project string) (rows []row, err error) {
		return rows, r.inProject(c, project, get, "/trust", nil, &rows)
	}
	var issuer, audience, role, environment, lasts string
	var claims map[string]string
	add := command("add PROJECT NAME", "Let the jobs of a CI system act in a project, with their identity tokens",
		func(c *cobra.Command, args []string) error {
			seconds, err := lifetime(lasts)
			if err != nil {
				return err
			}
			body := row{"name": args[1], "issuer": issuer, "audience": audience, "role": role, "claims": claims,
				"lifetime": seconds}
			where := &holder{environment: environment}
			if err := where.resolve(c, r); err != nil {
				return err
			}
			if where.environment != "" {
				body["environment"] = where.environment
			}
			return r.inProject(c, args[0], post, "/trust", body, nil)
		})
	flags := add.Flags()
	flags.StringVar(&issuer, "issuer", "", "who issues the identity tokens, such as https://gitlab.com")
	flags.StringVar(&audience, "audience", "", "for whom they are; the address of the server by default")
	flags.StringToStringVar(&claims, "claim", nil, "what they say, such as repository=acme/infra; * and ** are any "+
		"text, without and with slashes; may be repeated")
	flags.StringVar(&role, "role", "", "what the jobs may do")
	flags.StringVar(&environment, "environment", "", "only in this environment of the project")
	flags.StringVar(&lasts, "lifetime", "15m", "how long the tokens of jobs last, such as 15m or 2h")
	for _, name := range []string{"issuer", "claim", "role"} {
		_ = add.MarkFlagRequired(name)
	}
	return r.group("trust", "Which CI jobs a project trusts", add,
		command("list PROJECT", "List which CI jobs a project trusts", func(c *cobra.Command, args []string) error {
			rows, err := list(c, args[0])
			if err != nil {
				return err
			}
			return r.show(c, rows, "name", "issuer", "audience", "claims", "role", "environment", "lifetime",
				"last_used")
		}),
		command("remove PROJECT NAME", "Trust some CI jobs no more", func(c *cobra.Command, args []string) error {
			rows, err := list(c, args[0])
			if err != nil {
				return err
			}
			id, err := named(rows, args[1], "trust")
			if err != nil {
				return err
			}
			return r.inProject(c, args[0], remove, "/trust/"+id, nil, nil)
		}))
}
