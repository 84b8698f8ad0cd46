package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// errIncomplete ends the command of a dry run that could not tell about
// everything, or that did not come to its end.
var errIncomplete = exitError{
	code: 3,
	text: "the dry run is incomplete: of some resources it is not known what would change",
}

// choice is what a dry run is limited to.
type choice struct {
	commit                   string
	version                  int
	agents, types, resources []string
	noWait                   bool
}

func (f *choice) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(
		&f.commit,
		"commit",
		"",
		"a commit (its hash, or the beginning of it), branch or tag: it is compiled beside the environment's own compiles, and never released",
	)
	flags.IntVar(&f.version, "version", 0, "a version, released or not")
	flags.StringArrayVar(&f.agents, "agent", nil, "only of this agent; * and ? stand for other text; may be repeated")
	flags.StringArrayVar(&f.types, "type", nil,
		"only resources of this type, such as fs::File; * and ? stand for other text; may be repeated")
	flags.StringArrayVar(&f.resources, "resource", nil, "only this resource; may be repeated")
	flags.BoolVar(&f.noWait, "no-wait", false, "print the id of the dry run and do not wait for its end")
}

func (f *choice) body() (map[string]any, error) {
	if (f.commit == "") == (f.version == 0) {
		return nil, usageError{errors.New("say which: --commit REVISION or --version NUMBER")}
	}
	body := map[string]any{}
	if f.commit != "" {
		body["commit"] = f.commit
	} else {
		body["version"] = f.version
	}
	for name, list := range map[string][]string{"agents": f.agents, "resource_types": f.types, "resource_ids": f.resources} {
		if len(list) > 0 {
			body[name] = list
		}
	}
	return body, nil
}

// newDryRun makes `ordain dryrun`.
func newDryRun() *cobra.Command {
	r := &remote{}
	group := r.group(
		"dryrun",
		"What a version or a commit would change",
		command("start ENVIRONMENT VERSION", "Start a dry run of a version and print its id",
			func(c *cobra.Command, args []string) error {
				version, err := strconv.Atoi(args[1])
				if err != nil {
					return usageError{fmt.Errorf("%q is not a version", printable(args[1]))}
				}
				return r.startDryRun(c, args[0], &choice{version: version, noWait: true})
			},
		),
		command("list ENVIRONMENT", "List dry runs, newest first", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/dryrun", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "id", "date", "state", "model", "commit", "todo", "total", "unknown")
		}),
		command(
			"show ENVIRONMENT VERSION ID",
			"Show what a dry run of a version found; its id alone is for `report`",
			func(c *cobra.Command, args []string) error {
				return r.showDryRun(c, args[0], args[2])
			},
		),
		command("report ENVIRONMENT ID", "Show what a dry run found", func(c *cobra.Command, args []string) error {
			return r.showDryRun(c, args[0], args[1])
		}),
		command("cancel ENVIRONMENT ID", "End a dry run", func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], post, "/api/v2/dryrun-report/"+escape(args[1])+"/cancel", nil, nil)
		}),
	)
	var f choice
	f.add(group)
	group.Use = "dryrun ENVIRONMENT"
	group.Long = "What a version or a commit would change, found with the handlers themselves; nothing is changed.\n\n" +
		"The exit code is 3 where the dry run could not tell about everything: a target that is not reached, a paused agent, a handler that fails."
	group.Args = cobra.ArbitraryArgs
	group.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		if len(args) != 1 {
			return usageError{errors.New("usage: ordain dryrun ENVIRONMENT --commit REVISION | --version NUMBER")}
		}
		return r.startDryRun(c, args[0], &f)
	}
	return group
}

// startDryRun begins one and, unless told otherwise, waits for its end and shows it.
func (r *remote) startDryRun(c *cobra.Command, env string, f *choice) error {
	body, err := f.body()
	if err != nil {
		return err
	}
	var id string
	if err := r.in(c, env, post, "/api/v2/dryrun", body, &id); err != nil {
		return err
	}
	if f.noWait {
		fmt.Fprintln(c.OutOrStdout(), id)
		return nil
	}
	if err := r.awaitDryRun(c, env, id); err != nil {
		return err
	}
	return r.showDryRun(c, env, id)
}

// awaitDryRun asks until a dry run ended, and says how far it is.
func (r *remote) awaitDryRun(c *cobra.Command, env, id string) error {
	said := ""
	for {
		var runs []row
		if err := r.in(c, env, get, "/api/v2/dryrun", nil, &runs); err != nil {
			return err
		}
		for _, one := range runs {
			if one["id"] != id {
				continue
			}
			if one["ended"] != nil {
				return nil
			}
			line := cell(one, "state")
			if one["model"] != nil {
				line += fmt.Sprintf(": %s of %s resources still to look at", cell(one, "todo"), cell(one, "total"))
			}
			if line != said {
				fmt.Fprintln(c.ErrOrStderr(), line)
				said = line
			}
		}
		timer := time.NewTimer(500 * time.Millisecond)
		select {
		case <-c.Context().Done():
			timer.Stop()
			return c.Context().Err()
		case <-timer.C:
		}
	}
}

// showDryRun prints one, and fails where it ended and could not tell about everything.
func (r *remote) showDryRun(c *cobra.Command, env, id string) error {
	var found struct {
		Summary row      `json:"summary"`
		Diff    []row    `json:"diff"`
		Gone    []string `json:"no_longer_managed"`
	}
	if err := r.in(c, env, get, "/api/v2/dryrun-report/"+escape(id), nil, &found); err != nil {
		return err
	}
	if r.format == "json" {
		if err := r.showJSON(c, found); err != nil {
			return err
		}
	} else if err := r.printDryRun(c, found.Summary, found.Diff, found.Gone); err != nil {
		return err
	}
	if found.Summary["ended"] != nil && found.Summary["complete"] != true {
		return errIncomplete
	}
	return nil
}

func (r *remote) printDryRun(c *cobra.Command, summary row, diff []row, gone []string) error {
	out := c.OutOrStdout()
	var changes []row
	for _, one := range diff {
		switch {
		case one["status"] == "unmodified":
			continue
		case one["unknown"] == true:
			one["status"] = "unknown"
			one["attributes"] = cell(one, "reason")
			if behind := cell(one, "behind"); behind != "" {
				one["attributes"] = "behind " + behind + ", which would be created first: " + cell(one, "reason")
			}
		default:
			if attributes, ok := one["attributes"].(row); ok {
				one["attributes"] = changesLine(attributes)
			}
		}
		changes = append(changes, one)
	}
	if len(changes) > 0 {
		if err := r.show(c, changes, "status", "resource_id", "attributes"); err != nil {
			return err
		}
	}
	for _, id := range gone {
		fmt.Fprintf(out, "no longer managed: %s\n", printable(id))
	}
	if reason := cell(summary, "reason"); reason != "" {
		fmt.Fprintln(out, reason)
	}
	counts, _ := summary["counts"].(row)
	fmt.Fprintf(
		out,
		"%s: %s created, %s changed, %s purged, %s unchanged, %s unknown, %s undefined, %s no longer managed; %s of %s resources not looked at\n",
		cell(summary, "state"),
		cell(counts, "created"),
		cell(counts, "changed"),
		cell(counts, "purged"),
		cell(counts, "unchanged"),
		cell(counts, "unknown"),
		cell(counts, "undefined"),
		cell(counts, "no_longer_managed"),
		cell(summary, "todo"),
		cell(summary, "total"),
	)
	return nil
}

// changesLine says each change in a few words; the whole is in the JSON.
func changesLine(attributes row) string {
	const most = 60
	short := func(v any) string {
		text := []rune(cell(row{"v": v}, "v"))
		if len(text) > most {
			return string(text[:most]) + "…"
		}
		return string(text)
	}
	line := ""
	for _, name := range sortedKeys(attributes) {
		change, ok := attributes[name].(row)
		if !ok {
			continue
		}
		if line != "" {
			line += ", "
		}
		line += fmt.Sprintf("%s: %s → %s", name, short(change["from_value"]), short(change["to_value"]))
	}
	return line
}
