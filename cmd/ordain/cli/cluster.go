package cli

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ordain.dev/ordain/api/client"
)

// newCluster makes `ordain cluster`.
func newCluster() *cobra.Command {
	r := &remote{}
	k := &clusters{remote: r}
	own := []*cobra.Command{
		clusterCreate(k), clusterPlan(k), clusterList(k), clusterShow(k), clusterStatus(k), clusterAmend(k),
		clusterServices(k, "start", "Start services and what they need"),
		clusterServices(k, "stop", "Stop services and what needs them"),
		clusterServices(k, "restart", "Restart services and what needs them"),
		clusterDelete(k),
		command("rollback NAME", "Go back to what the cluster was when it was whole last",
			func(c *cobra.Command, args []string) error {
				var done row
				if err := k.call(c, post, "/"+escape(args[0])+"/rollback", nil, &done); err != nil {
					return err
				}
				return k.changed(c, done)
			}),
		clusterVerb(k, "pause", "Begin no more tasks of a cluster; what runs goes on"),
		clusterVerb(k, "resume", "Begin tasks of a cluster again"),
		clusterVerb(k, "abort", "End the job of a cluster; what there is stays, and is known"),
		clusterVerb(k, "retry", "Try again what failed, or was aborted"),
		clusterJobs(k), clusterJob(k), clusterTask(k),
	}
	for _, c := range own {
		c.Flags().StringVar(&k.environment, "environment", os.Getenv("ORDAIN_ENVIRONMENT"),
			"environment of the cluster (or ORDAIN_ENVIRONMENT); not needed if there is only one")
	}
	g := r.group("cluster", "Clusters: machines with services, made from templates of a catalogue", own...)
	g.Long = "A cluster is a file in the repository of its environment, clusters/NAME.yaml. Commands that change a\n" +
		"cluster commit its file; where that needs a pull request, they open one. What they ask for is done when\n" +
		"the commit is deployed: ordain cluster status NAME --watch."
	g.AddCommand(newCatalogue(r), clusterImport(r), clusterExport(r), newClusterTemplate(r), newClusterResource(r),
		newTenant(r), clusterQueues(r))
	return g
}

const clusterPath = "/api/v2/cluster/clusters"

// clusters sends requests about the clusters of one environment.
type clusters struct {
	*remote
	environment string

	server  *client.Client
	id      string // of the environment
	project string // its id
}

// call sends a request to a path below the clusters of the environment.
func (k *clusters) call(c *cobra.Command, method, path string, body, out any) error {
	if k.server == nil {
		if err := k.find(c); err != nil {
			return err
		}
	}
	return k.server.Call(c.Context(), method, clusterPath+path, k.id, body, out)
}

// find finds the environment: the one that is named, or the only one.
func (k *clusters) find(c *cobra.Command) error {
	server, err := k.client()
	if err != nil {
		return err
	}
	if k.environment == "" {
		var projects []struct {
			Name         string               `json:"name"`
			Environments []client.Environment `json:"environments"`
		}
		const path = "/api/v2/project?environment_details=false"
		if err := server.Call(c.Context(), get, path, "", nil, &projects); err != nil {
			return err
		}
		var all []client.Environment
		var names []string
		for _, p := range projects {
			for _, e := range p.Environments {
				all, names = append(all, e), append(names, p.Name+"/"+e.Name)
			}
		}
		if len(all) != 1 {
			return usageError{fmt.Errorf("say in which environment with --environment; there are %s", someOf(names))}
		}
		k.server, k.id, k.project = server, all[0].ID, all[0].ProjectID
		return nil
	}
	e, err := server.Find(c.Context(), k.environment)
	if err == nil {
		k.server, k.id, k.project = server, e.ID, e.ProjectID
	}
	return err
}

// someOf lists the first names of many.
func someOf(names []string) string {
	const most = 10
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// changed prints where a change went, and what it will do.
func (k *clusters) changed(c *cobra.Command, done row) error {
	if k.format == "json" {
		return k.showJSON(c, done)
	}
	out := c.OutOrStdout()
	plan, _ := done["plan"].(row)
	printText(c, plan["text"])
	name := cell(done, "cluster")
	if page := cell(done, "pull_request"); page != "" {
		fmt.Fprintf(out, "pull request: %s\nit is done after somebody has merged that, and it was deployed: ", page)
	} else {
		fmt.Fprintf(out, "commit: %s\nit is done when that is deployed: ", cell(done, "commit"))
	}
	fmt.Fprintf(out, "ordain cluster status %s --watch\n", name)
	return nil
}

// printText prints text of a server line by line.
func printText(c *cobra.Command, text any) {
	lines, _ := text.(string)
	for line := range strings.Lines(lines) {
		fmt.Fprintln(c.OutOrStdout(), printable(strings.TrimRight(line, "\r\n")))
	}
}

func clusterVerb(k *clusters, verb, short string) *cobra.Command {
	return command(verb+" NAME", short, func(c *cobra.Command, args []string) error {
		return k.call(c, post, "/"+escape(args[0])+"/"+verb, nil, nil)
	})
}

func clusterList(k *clusters) *cobra.Command {
	var states []string
	var ended bool
	c := command("list", "List clusters", func(c *cobra.Command, _ []string) error {
		query := url.Values{"state": states}
		if ended {
			query.Set("ended", "true")
		}
		var rows []row
		if err := k.call(c, get, "?"+query.Encode(), nil, &rows); err != nil {
			return err
		}
		return k.show(c, rows, "name", "state", "template", "size", "provider", "owner", "made", "expires", "paused",
			"problem")
	})
	c.Flags().StringSliceVar(&states, "state", nil,
		"only in this state: pending, active, incomplete, inconsistent or terminated; may be repeated")
	c.Flags().BoolVar(&ended, "ended", false, "also those that are gone")
	return c
}

func clusterShow(k *clusters) *cobra.Command {
	return command("show NAME", "Show a cluster and its nodes", func(c *cobra.Command, args []string) error {
		var one row
		if err := k.call(c, get, "/"+escape(args[0]), nil, &one); err != nil {
			return err
		}
		if k.format == "json" {
			return k.showJSON(c, one)
		}
		for _, field := range []string{
			"name", "state", "problem", "description", "template", "size", "provider", "owner", "made", "expires",
			"paused", "deleting", "wanted_commit", "applied_commit",
		} {
			if text := cell(one, field); text != "" && text != "false" {
				fmt.Fprintf(c.OutOrStdout(), "%-14s  %s\n", field, text)
			}
		}
		if job, ok := one["job"].(row); ok {
			fmt.Fprintf(c.OutOrStdout(), "%-14s  %s\n", "job", jobLine(job))
		}
		nodes := rowsOf(one["nodes"])
		for _, n := range nodes {
			n["services"] = servicesLine(n)
			n["addresses"] = addressLine(n)
			if n["wanted"] != true {
				n["state"] = cell(n, "state") + ", not wanted"
			}
		}
		fmt.Fprintln(c.OutOrStdout())
		return k.show(c, nodes, "number", "hostname", "state", "addresses", "hardwaretype", "imagetype", "services")
	})
}

// jobLine says how far a job is.
func jobLine(job row) string {
	line := fmt.Sprintf("%s: %s, %s, %s of %s tasks", cell(job, "number"), cell(job, "action"), cell(job, "state"),
		cell(job, "tasks_complete"), cell(job, "tasks_total"))
	if n := cell(job, "tasks_failed"); n != "" && n != "0" {
		line += ", " + n + " failed"
	}
	if why := cell(job, "problem"); why != "" {
		line += ": " + why
	}
	return line
}

// servicesLine lists the services of a node with how far they are.
func servicesLine(node row) string {
	var all []string
	for _, s := range rowsOf(node["services"]) {
		phase := cell(s, "phase")
		if phase == "" {
			phase = "absent"
		}
		all = append(all, cell(s, "name")+" "+phase)
	}
	return strings.Join(all, ", ")
}

// addressLine lists the addresses of a node, each once.
func addressLine(node row) string {
	by, _ := node["addresses"].(row)
	var all []string
	for _, name := range sortedKeys(by) {
		if text := cell(by, name); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

func clusterDelete(k *clusters) *cobra.Command {
	var yes bool
	c := command("delete NAME", "Delete a cluster with its machines", func(c *cobra.Command, args []string) error {
		if !yes {
			if err := confirm(c, "Delete the cluster "+args[0]+" and its machines"); err != nil {
				return err
			}
		}
		var done row
		if err := k.call(c, remove, "/"+escape(args[0]), nil, &done); err != nil {
			return err
		}
		done["cluster"] = args[0]
		return k.changed(c, done)
	})
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// confirm asks on a terminal whether to go on. Without one it refuses: scripts say --yes.
func confirm(c *cobra.Command, question string) error {
	in, ok := c.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usageError{fmt.Errorf("say --yes: there is no terminal on which to ask")}
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s? [y/N] ", printable(question))
	answer, err := (&secrets{c: c}).line()
	if err != nil {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return fmt.Errorf("nothing was done")
	}
	return nil
}
