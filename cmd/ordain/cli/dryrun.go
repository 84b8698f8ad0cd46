package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// errIncomplete ends the command of a dry run that could not examine every
// resource, or that was cancelled.
var errIncomplete = exitError{
	code: 3,
	text: "the dry run is incomplete: what would change is unknown for some resources",
}

// errDryRunFailed ends the command of a dry run that failed as a whole; what it printed says why.
var errDryRunFailed = exitError{code: 3, text: "the dry run failed"}

// dryRunFlags says what a dry run is of, and which resources it is limited to.
type dryRunFlags struct {
	commit                   string
	version                  int
	agents, types, resources []string
	noWait                   bool
}

func (f *dryRunFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(
		&f.commit,
		"commit",
		"",
		"a commit (its hash, or the beginning of it), branch or tag; it is compiled beside the environment's own "+
			"compiles, and never released",
	)
	flags.IntVar(&f.version, "version", 0, "a version, released or not")
	flags.StringArrayVar(&f.agents, "agent", nil,
		"only resources of this agent; may have the wildcards * and ?; may be repeated")
	flags.StringArrayVar(&f.types, "type", nil,
		"only resources of this type, such as fs::File; may have the wildcards * and ?; may be repeated")
	flags.StringArrayVar(&f.resources, "resource", nil, "only this resource; may be repeated")
	flags.BoolVar(&f.noWait, "no-wait", false, "print the id of the dry run and do not wait for its end")
}

func (f *dryRunFlags) body() (map[string]any, error) {
	if (f.commit == "") == (f.version == 0) {
		return nil, usageError{errors.New("say which: --commit REVISION or --version NUMBER")}
	}
	body := map[string]any{}
	if f.commit != "" {
		body["commit"] = f.commit
	} else {
		body["version"] = f.version
	}
	for name, list := range map[string][]string{
		"agents": f.agents, "resource_types": f.types, "resource_ids": f.resources,
	} {
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
		"Dry runs: what a version or a commit would change",
		command("start ENVIRONMENT VERSION", "Start a dry run of a version and print its id",
			func(c *cobra.Command, args []string) error {
				version, err := strconv.Atoi(args[1])
				if err != nil {
					return usageError{fmt.Errorf("%q is not a version", printable(args[1]))}
				}
				return r.startDryRun(c, args[0], &dryRunFlags{version: version, noWait: true})
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
			"Show the result of a dry run of a version; `report` needs only the id",
			func(c *cobra.Command, args []string) error {
				return r.showDryRun(c, args[0], args[2])
			},
		),
		command("report ENVIRONMENT ID", "Show the result of a dry run", func(c *cobra.Command, args []string) error {
			return r.showDryRun(c, args[0], args[1])
		}),
		command("cancel ENVIRONMENT ID", "Cancel a dry run", func(c *cobra.Command, args []string) error {
			return r.in(c, args[0], post, "/api/v2/dryrun-report/"+escape(args[1])+"/cancel", nil, nil)
		}),
	)
	var f dryRunFlags
	f.add(group)
	group.Use = "dryrun ENVIRONMENT"
	group.Long = "Shows what a version or a commit would change. The handlers themselves find out, and change\n" +
		"nothing.\n\n" +
		"The exit code is 3 if the dry run could not examine everything: a target is unreachable, an agent\n" +
		"is paused, a handler fails, or the commit does not compile: then its errors are printed."
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

// startDryRun starts a dry run. Unless noWait is set, it waits for the end and prints the result.
func (r *remote) startDryRun(c *cobra.Command, env string, f *dryRunFlags) error {
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

// awaitDryRun waits until a dry run has ended, and prints its progress.
func (r *remote) awaitDryRun(c *cobra.Command, env, id string) error {
	printed := ""
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
				line += fmt.Sprintf(": %s of %s resources to go", cell(one, "todo"), cell(one, "total"))
			}
			if line != printed {
				fmt.Fprintln(c.ErrOrStderr(), line)
				printed = line
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

// showDryRun prints the result of a dry run. It fails if the dry run has ended and is incomplete.
func (r *remote) showDryRun(c *cobra.Command, env, id string) error {
	var found struct {
		Summary row      `json:"summary"`
		Diff    []row    `json:"diff"`
		Gone    []string `json:"no_longer_managed"`
		Wrong   []row    `json:"diagnostics"`
		Report  string   `json:"compile_report"`
	}
	if err := r.in(c, env, get, "/api/v2/dryrun-report/"+escape(id), nil, &found); err != nil {
		return err
	}
	if r.format == "json" {
		if err := r.showJSON(c, found); err != nil {
			return err
		}
	} else {
		if err := r.printDryRun(c, found.Summary, found.Diff, found.Gone); err != nil {
			return err
		}
		printWrong(c, env, found.Wrong, found.Summary)
	}
	if found.Summary["state"] == "failed" {
		return errDryRunFailed
	}
	if found.Summary["ended"] != nil && found.Summary["complete"] != true {
		return errIncomplete
	}
	return nil
}

func (r *remote) printDryRun(c *cobra.Command, summary row, diff []row, gone []string) error {
	out := c.OutOrStdout()
	var changes []row
	byLine := lineDiffsOf(diff)
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
		if err := printLineDiffs(out, byLine); err != nil {
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
	fmt.Fprintf(out, "%s: %s created, %s changed, %s purged, %s unchanged, %s unknown, %s undefined, "+
		"%s no longer managed; %s of %s resources not examined\n",
		cell(summary, "state"), cell(counts, "created"), cell(counts, "changed"), cell(counts, "purged"),
		cell(counts, "unchanged"), cell(counts, "unknown"), cell(counts, "undefined"),
		cell(counts, "no_longer_managed"), cell(summary, "todo"), cell(summary, "total"))
	return nil
}

// printWrong prints what is wrong with the model of a commit, each with its place, and where the whole report is.
func printWrong(c *cobra.Command, env string, wrong []row, summary row) {
	out := c.OutOrStdout()
	for _, one := range wrong {
		text := cell(one, "severity") + ": " + cell(one, "message")
		if code := cell(one, "code"); code != "" {
			text += " [" + code + "]"
		}
		if place := cell(one, "file"); place != "" {
			for _, part := range []string{"line", "column"} {
				if n := cell(one, part); n != "" {
					place += ":" + n
				}
			}
			text = place + ": " + text
		}
		fmt.Fprintln(out, text)
		if source, _ := one["source"].(string); source != "" {
			fmt.Fprintln(out, "    "+printable(strings.TrimSpace(source)))
		}
		if hint := cell(one, "hint"); hint != "" {
			fmt.Fprintln(out, "    hint: "+hint)
		}
	}
	if compile := cell(summary, "compile"); compile != "" && summary["state"] == "failed" {
		fmt.Fprintf(out, "The whole report: ordain compile-report show %s %s\n", printable(env), compile)
	}
}

// changesLine describes the changes of a resource briefly; the JSON has them whole, and printLineDiffs shows those that
// are known by line.
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
		if _, ok := change["line_diff"].(string); ok {
			line += name + ": see below"
			continue
		}
		line += fmt.Sprintf("%s: %s → %s", name, short(change["from_value"]), short(change["to_value"]))
	}
	return line
}
