package cli

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// newCloneEnvironment makes `ordain environment clone`.
func newCloneEnvironment(r *remote) *cobra.Command {
	var project, repo, branch, subdir, description string
	var settings, tags []string
	var halted, secrets, roles bool
	clone := command("clone NAME NEW", "Make an environment NEW with the source and the settings of NAME",
		func(c *cobra.Command, args []string) error {
			body := row{"name": args[1], "halted": halted, "copy_secrets": secrets, "copy_roles": roles}
			for _, one := range []struct{ flag, field, value string }{
				{"repo", "repository", repo}, {"branch", "branch", branch}, {"subdir", "subdir", subdir},
				{"description", "description", description},
			} {
				if c.Flags().Changed(one.flag) {
					body[one.field] = one.value
				}
			}
			if project != "" {
				id, err := r.projectCalled(c, project)
				if err != nil {
					return err
				}
				body["project_id"] = id
			}
			changed := row{}
			for _, one := range settings {
				name, value, ok := strings.Cut(one, "=")
				if !ok || name == "" {
					return usageError{fmt.Errorf("--setting %s: write it as NAME=VALUE", printable(one))}
				}
				changed[name] = value
			}
			if len(changed) > 0 {
				body["settings"] = changed
			}
			if len(tags) > 0 {
				body["tags"] = tags
			}
			var made row
			if err := r.in(c, args[0], post, "/api/v2/environment/%s/clone", body, &made); err != nil {
				return err
			}
			return r.show(c, []row{made}, "name", "id", "repo_url", "repo_branch", "halted")
		},
	)
	clone.Long = clone.Short + ".\n\nParameters, versions and tags stay where they are. Settings that project.yml " +
		"decides are decided by the clone's own."
	flags := clone.Flags()
	flags.StringVar(&project, "project", "", "name or id of the project (default: that of NAME)")
	flags.StringVar(&repo, "repo", "", "URL of another repository")
	flags.StringVar(&branch, "branch", "", "another branch")
	flags.StringVar(&subdir, "subdir", "", "another folder of the model in the repository")
	flags.StringVar(&description, "description", "", "what the clone is for")
	flags.StringArrayVar(&settings, "setting", nil, "setting that differs, as NAME=VALUE; may be repeated")
	flags.StringArrayVar(&tags, "tag", nil, "tag, which roles can be bound to; may be repeated")
	flags.BoolVar(&halted, "halted", false, "compile and deploy nothing until the clone is resumed")
	flags.BoolVar(&secrets, "secrets", false, "copy the secrets, too; it takes an administrator of both projects")
	flags.BoolVar(&roles, "roles", false, "give the same people the same roles, as far as you may")
	return clone
}

// newCopySettings makes `ordain environment copy-settings`.
func newCopySettings(r *remote) *cobra.Command {
	var from string
	var names []string
	var preview bool
	copies := command("copy-settings NAME", "Copy settings of another environment to NAME",
		func(c *cobra.Command, args []string) error {
			var origin row
			if err := r.in(c, from, get, "/api/v2/environment/%s", nil, &origin); err != nil {
				return err
			}
			id, _ := origin["id"].(string)
			var changes []row
			var err error
			if preview {
				err = r.in(c, args[0], get, "/api/v2/environment/%s/copy_settings?from="+url.QueryEscape(id), nil,
					&changes)
			} else {
				body := row{"from": id}
				if len(names) > 0 {
					body["settings"] = names
				}
				err = r.in(c, args[0], post, "/api/v2/environment/%s/copy_settings", body, &changes)
			}
			if err != nil {
				return err
			}
			return r.show(c, changes, "name", "before", "after", "problem")
		},
	)
	flags := copies.Flags()
	flags.StringVar(&from, "from", "", "name or id of the environment to copy from")
	flags.StringArrayVar(&names, "setting", nil, "copy only this setting; may be repeated")
	flags.BoolVar(&preview, "dry-run", false, "only show what would change")
	_ = copies.MarkFlagRequired("from")
	return copies
}
