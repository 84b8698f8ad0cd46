package cli

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
)

func newUser() *cobra.Command {
	r := &remote{}
	disable := func(disabled bool) func(*cobra.Command, []string) error {
		return func(c *cobra.Command, args []string) error {
			return r.call(c, patch, "/api/v2/user/"+escape(args[0]), row{"disabled": disabled}, nil)
		}
	}
	return r.group("user", "Users: who may log in",
		command("list", "List users", func(c *cobra.Command, _ []string) error {
			var rows []row
			if err := r.call(c, get, "/api/v2/user", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "username", "auth_method", "is_admin", "disabled", "last_login")
		}),
		command("add NAME", "Add a user; the password is asked for, or read from standard input",
			func(c *cobra.Command, args []string) error {
				password, err := (&secrets{c: c}).askNew("Password of " + printable(args[0]))
				if err != nil {
					return err
				}
				return r.call(c, post, "/api/v2/user", row{"username": args[0], "password": password}, nil)
			}),
		command("password NAME", "Change a password: your own (standard input: the present one, then the new one), or "+
			"as an administrator that of somebody else", func(c *cobra.Command, args []string) error {
			var me row
			if err := r.call(c, get, "/api/v2/current_user", nil, &me); err != nil {
				return err
			}
			body, ask := row{}, &secrets{c: c}
			if me["username"] == args[0] {
				current, err := ask.ask("Present password")
				if err != nil {
					return err
				}
				body["current_password"] = current
			}
			password, err := ask.askNew("New password of " + printable(args[0]))
			if err != nil {
				return err
			}
			body["password"] = password
			return r.call(c, patch, "/api/v2/user/"+escape(args[0])+"/password", body, nil)
		}),
		command("disable NAME", "Keep a user from logging in, and log them out", disable(true)),
		command("enable NAME", "Let a user log in again", disable(false)),
		command("delete NAME", "Delete a user, and log them out", func(c *cobra.Command, args []string) error {
			return r.call(c, remove, "/api/v2/user/"+escape(args[0]), nil, nil)
		}),
	)
}

// holder holds the flags that say who has a role, and where.
type holder struct{ user, group, token, environment, project, tag string }

func (h *holder) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&h.user, "user", "", "name of the user who has the role")
	flags.StringVar(&h.group, "group", "", "or the group of the identity provider")
	flags.StringVar(&h.token, "token", "", "or the id of the token")
	flags.StringVar(&h.environment, "environment", "", "where: in this environment")
	flags.StringVar(&h.project, "project", "", "where: in this project")
	flags.StringVar(
		&h.tag,
		"tag",
		"",
		"where: in all environments with this tag; without any of these, on the whole server",
	)
	c.MarkFlagsOneRequired("user", "group", "token")
	c.MarkFlagsMutuallyExclusive("user", "group", "token")
	c.MarkFlagsMutuallyExclusive("environment", "project", "tag")
}

// resolve finds the ids of the project and the environment.
func (h *holder) resolve(c *cobra.Command, r *remote) error {
	server, err := r.client()
	if err != nil {
		return err
	}
	if h.environment != "" {
		e, err := server.Find(c.Context(), h.environment)
		if err != nil {
			return err
		}
		h.environment = e.ID
	}
	if h.project == "" {
		return nil
	}
	var projects []row
	if err := r.call(c, get, "/api/v2/project", nil, &projects); err != nil {
		return err
	}
	for _, p := range projects {
		if p["name"] == h.project || p["id"] == h.project {
			h.project, _ = p["id"].(string)
			return nil
		}
	}
	return fmt.Errorf("there is no project called %s; see ordain project list", h.project)
}

// path returns where the server keeps such roles: administrators of a project manage those in it themselves.
func (h *holder) path() string {
	if h.project != "" {
		return "/api/v2/project/" + h.project + "/member"
	}
	return "/api/v2/role_binding"
}

// assignment returns the path for roles of users in environments, which administrators of these manage themselves.
func (h *holder) assignment() string { return "/api/v2/role_assignment/" + escape(h.user) }

func (h *holder) fields(role string) row {
	body := row{"role": role}
	for name, value := range map[string]string{
		"user": h.user, "group": h.group, "token": h.token, "environment": h.environment, "tag": h.tag,
	} {
		if value != "" {
			body[name] = value
		}
	}
	return body
}

// is reports whether a binding of the server gives this holder a role.
func (h *holder) is(b row, role string) bool {
	text := func(name string) string { s, _ := b[name].(string); return s }
	kind, subject := "user", h.user
	if h.group != "" {
		kind, subject = "group", h.group
	} else if h.token != "" {
		kind, subject = "token", h.token
	}
	return text("role") == role && text("kind") == kind && text("subject") == subject && text("tag") == h.tag &&
		text("environment") == h.environment && text("project") == h.project
}

func newRole() *cobra.Command {
	r := &remote{}
	return r.group("role", "Roles: what people may do, and who has them",
		command("list", "List roles with what they allow", func(c *cobra.Command, _ []string) error {
			var rows []row
			if err := r.call(c, get, "/api/v2/access/roles", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "name", "labels", "verbs", "description")
		}),
		newRoleCreate(r),
		command("delete NAME", "Delete a role that nobody has", func(c *cobra.Command, args []string) error {
			return r.call(c, remove, "/api/v2/role?name="+url.QueryEscape(args[0]), nil, nil)
		}),
		command("bindings", "List who has which role where", func(c *cobra.Command, _ []string) error {
			var rows []row
			if err := r.call(c, get, "/api/v2/role_binding", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "kind", "subject", "role", "project", "environment", "tag", "created_by")
		}),
		newRoleAssign(r),
		newRoleUnassign(r),
	)
}

func newRoleCreate(r *remote) *cobra.Command {
	var description string
	var labels, verbs []string
	c := command("create NAME", "Make a role; `ordain access verbs` lists labels and verbs",
		func(c *cobra.Command, args []string) error {
			body := row{"name": args[0], "description": description}
			if len(labels) > 0 {
				body["labels"] = labels
			}
			if len(verbs) > 0 {
				body["verbs"] = verbs
			}
			return r.call(c, post, "/api/v2/role", body, nil)
		})
	c.Flags().StringVar(&description, "description", "", "what it is for")
	c.Flags().StringSliceVar(&labels, "label", nil, "a kind of things that it allows; may be repeated")
	c.Flags().StringSliceVar(&verbs, "verb", nil, "a single thing that it allows; may be repeated")
	return c
}

func newRoleAssign(r *remote) *cobra.Command {
	h := &holder{}
	c := command("assign ROLE", "Give somebody a role", func(c *cobra.Command, args []string) error {
		if err := h.resolve(c, r); err != nil {
			return err
		}
		if h.user != "" && h.environment != "" {
			return r.call(c, post, h.assignment(), row{"environment": h.environment, "role": args[0]}, nil)
		}
		return r.call(c, post, h.path(), h.fields(args[0]), nil)
	})
	h.add(c)
	return c
}

func newRoleUnassign(r *remote) *cobra.Command {
	h := &holder{}
	c := command("unassign ROLE", "Take a role away from somebody", func(c *cobra.Command, args []string) error {
		if err := h.resolve(c, r); err != nil {
			return err
		}
		if h.user != "" && h.environment != "" {
			query := url.Values{"environment": {h.environment}, "role": {args[0]}}
			return r.call(c, remove, h.assignment()+"?"+query.Encode(), nil, nil)
		}
		var rows []row
		if err := r.call(c, get, h.path(), nil, &rows); err != nil {
			return err
		}
		for _, b := range rows {
			if h.is(b, args[0]) {
				id, _ := b["id"].(string)
				return r.call(c, remove, h.path()+"/"+escape(id), nil, nil)
			}
		}
		return errors.New("nobody has this role there; `ordain role bindings` lists who has which")
	})
	h.add(c)
	return c
}

func newAccess() *cobra.Command {
	r := &remote{}
	return r.group(
		"access",
		"What can be done, and who may do it and why",
		command(
			"verbs",
			"List what can be done, with the label that roles allow",
			func(c *cobra.Command, _ []string) error {
				var rows []row
				if err := r.call(c, get, "/api/v2/access/verbs", nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "verb", "label", "reach", "summary")
			},
		),
		newAccessExplain(r),
	)
}

func newAccessExplain(r *remote) *cobra.Command {
	var project string
	c := &cobra.Command{
		Use: "explain USER VERB [ENVIRONMENT]", Short: "Say whether somebody may do something, and why",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 && len(args) != 3 {
				return usageError{errors.New("usage: ordain … explain USER VERB [ENVIRONMENT]")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			h := holder{project: project}
			if len(args) == 3 {
				h.environment = args[2]
			}
			if err := h.resolve(c, r); err != nil {
				return err
			}
			query := url.Values{"user": {args[0]}, "verb": {args[1]}}
			if h.environment != "" {
				query.Set("environment", h.environment)
			}
			if h.project != "" {
				query.Set("project", h.project)
			}
			var answer row
			if err := r.call(c, get, "/api/v2/access/explain?"+query.Encode(), nil, &answer); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, answer)
			}
			word := "No"
			if answer["allowed"] == true {
				word = "Yes"
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s.\n", word, cell(answer, "reason"))
			return nil
		},
	}
	c.Flags().StringVar(&project, "project", "", "in this project, instead of an environment")
	return c
}
