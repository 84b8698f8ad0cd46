package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

const tenantPath = "/api/v2/cluster/tenants"

// newTenant makes `ordain cluster tenant`.
func newTenant(r *remote) *cobra.Command {
	g := &cobra.Command{Use: "tenant", Short: "How much projects may use of the cluster service"}
	show := func(c *cobra.Command, rows ...row) error {
		return r.show(c, rows, "name", "clusters", "max_clusters", "nodes", "max_nodes", "workers")
	}
	g.AddCommand(
		command("list", "List all projects (administrators of the server)", func(c *cobra.Command, _ []string) error {
			var rows []row
			if err := r.call(c, get, tenantPath, nil, &rows); err != nil {
				return err
			}
			return show(c, rows...)
		}),
		command("show PROJECT", "Show what a project may use, and uses", func(c *cobra.Command, args []string) error {
			one, err := r.tenant(c, args[0])
			if err != nil {
				return err
			}
			return show(c, one)
		}),
		tenantSet(r, show))
	return g
}

func (r *remote) tenant(c *cobra.Command, project string) (one row, err error) {
	id, err := r.projectID(c, project)
	if err != nil {
		return nil, err
	}
	return one, r.call(c, get, tenantPath+"/"+id, nil, &one)
}

func tenantSet(r *remote, show func(*cobra.Command, ...row) error) *cobra.Command {
	limits := map[string]*string{}
	fields := map[string]string{"workers": "workers", "max-clusters": "max_clusters", "max-nodes": "max_nodes"}
	c := command("set PROJECT", "Set what a project may use (administrators of the server)",
		func(c *cobra.Command, args []string) error {
			one, err := r.tenant(c, args[0])
			if err != nil {
				return err
			}
			body, changed := row{}, false
			for flag, field := range fields {
				if body[field] = one[field]; !c.Flags().Changed(flag) {
					continue
				}
				changed = true
				if body[field], err = limit(*limits[flag], flag != "workers"); err != nil {
					return usageError{fmt.Errorf("--%s: %w", flag, err)}
				}
			}
			if !changed {
				return usageError{errors.New("say what to set: --workers, --max-clusters, --max-nodes")}
			}
			if err := r.call(c, put, tenantPath+"/"+cell(one, "project"), body, &one); err != nil {
				return err
			}
			return show(c, one)
		})
	for flag, usage := range map[string]string{
		"workers":      "tasks that run at a time in the server's own provisioner",
		"max-clusters": "most clusters; none for no limit",
		"max-nodes":    "most machines of all clusters; none for no limit",
	} {
		limits[flag] = c.Flags().String(flag, "", usage)
	}
	return c
}

// limit reads a number, or none, which is no limit.
func limit(text string, optional bool) (any, error) {
	if optional && text == "none" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q is no number of things", text)
	}
	return n, nil
}

func clusterQueues(r *remote) *cobra.Command {
	var project string
	c := command("queues", "Count the tasks of clusters that wait and run, of all projects or one",
		func(c *cobra.Command, _ []string) error {
			path := sharedCatalogue
			var projects []row
			if err := r.call(c, get, "/api/v2/project", nil, &projects); err != nil {
				return err
			}
			if project != "" {
				id, err := r.projectID(c, project)
				if err != nil {
					return err
				}
				path += "/project/" + id
			}
			var rows []row
			if err := r.call(c, get, path+"/metrics/queues", nil, &rows); err != nil {
				return err
			}
			if r.format != "json" {
				for _, one := range rows {
					one["project"] = nameOf(projects, cell(one, "project"))
				}
			}
			return r.show(c, rows, "project", "state", "tasks", "oldest")
		})
	c.Flags().StringVar(&project, "project", "", "only of this project")
	return c
}

// nameOf returns the name of the row with an id, or the id.
func nameOf(rows []row, id string) string {
	for _, one := range rows {
		if one["id"] == id {
			return cell(one, "name")
		}
	}
	return id
}
