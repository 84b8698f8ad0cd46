package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func clusterJobs(k *clusters) *cobra.Command {
	var limit int
	c := command("jobs NAME", "List the jobs of a cluster, newest first", func(c *cobra.Command, args []string) error {
		var rows []row
		if err := k.call(c, get, "/"+escape(args[0])+"/jobs?limit="+strconv.Itoa(limit), nil, &rows); err != nil {
			return err
		}
		return k.show(c, rows, "number", "action", "state", "tasks_complete", "tasks_total", "tasks_failed", "made_by",
			"made", "ended", "problem")
	})
	c.Flags().IntVar(&limit, "limit", 50, "how many")
	return c
}

func clusterJob(k *clusters) *cobra.Command {
	var states []string
	var node int
	c := command("job NAME JOB", "Show a job of a cluster and its tasks", func(c *cobra.Command, args []string) error {
		query := url.Values{"state": states}
		if c.Flags().Changed("node") {
			query.Set("node", strconv.Itoa(node))
		}
		var job row
		tasks := []row{}
		for {
			page := row{}
			path := "/" + escape(args[0]) + "/jobs/" + escape(args[1]) + "?" + query.Encode()
			if err := k.call(c, get, path, nil, &page); err != nil {
				return err
			}
			found := rowsOf(page["tasks"])
			job, tasks = page, append(tasks, found...)
			if page["more"] != true || len(found) == 0 {
				break
			}
			query.Set("after", cell(found[len(found)-1], "number"))
		}
		if k.format == "json" {
			job["tasks"], job["more"] = tasks, false
			return k.showJSON(c, job)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n", jobLine(job))
		return k.show(c, tasks, "number", "stage", "node", "action", "service", "state", "attempts", "not_before",
			"taken_by", "problem")
	})
	c.Flags().StringSliceVar(&states, "state", nil,
		"only tasks in this state: waiting, ready, running, complete, failed or dropped; may be repeated")
	c.Flags().IntVar(&node, "node", 0, "only tasks of the node with this number")
	return c
}

func clusterTask(k *clusters) *cobra.Command {
	var follow bool
	c := command("task NAME JOB TASK", "Show what a task printed", func(c *cobra.Command, args []string) error {
		path := "/" + escape(args[0]) + "/jobs/" + escape(args[1]) + "/tasks/" + escape(args[2])
		if follow {
			return k.follow(c, path)
		}
		var one row
		if err := k.call(c, get, path, nil, &one); err != nil {
			return err
		}
		if k.format == "json" {
			return k.showJSON(c, one)
		}
		fmt.Fprintln(c.OutOrStdout(), taskLine(one))
		printText(c, one["output"])
		return nil
	})
	c.Long = "With --follow it goes on until the task has ended. Exit status: 1 if it did not complete."
	c.Flags().BoolVar(&follow, "follow", false, "go on until the task has ended")
	return c
}

// taskLine says what a task is, and how far.
func taskLine(one row) string {
	what := strings.TrimSpace(cell(one, "action") + " " + cell(one, "service"))
	line := fmt.Sprintf("%s: %s on node %s: %s", cell(one, "number"), what, cell(one, "node"), cell(one, "state"))
	if n := cell(one, "attempts"); n != "" && n != "0" && n != "1" {
		line += ", attempt " + n
	}
	if next := cell(one, "not_before"); next != "" {
		line += ", next attempt at " + next
	}
	if problem := cell(one, "problem"); problem != "" {
		line += ": " + problem
	}
	return line
}

// follow prints what a task prints until it has ended.
func (k *clusters) follow(c *cobra.Command, path string) error {
	state, printed := "", ""
	for {
		var one row
		if err := k.call(c, get, path, nil, &one); err != nil {
			return err
		}
		ended := slices.Contains([]string{"complete", "failed", "dropped"}, cell(one, "state"))
		if k.format == "json" {
			if ended {
				if err := k.showJSON(c, one); err != nil {
					return err
				}
			}
		} else {
			text, _ := one["output"].(string)
			printText(c, added(printed, text))
			printed = text
			if line := taskLine(one); line != state {
				fmt.Fprintln(c.OutOrStdout(), line)
				state = line
			}
		}
		switch {
		case ended && one["state"] != "complete":
			return errPrinted
		case ended || !pause(c.Context()):
			return nil
		}
	}
}

// added returns what is new in an output. The server keeps the end of a long output, so that its beginning may be gone.
func added(before, now string) string {
	for i := range before {
		if rest, ok := strings.CutPrefix(now, before[i:]); ok {
			return rest
		}
	}
	return now
}
