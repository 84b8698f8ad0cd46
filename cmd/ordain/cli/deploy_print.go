package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/embedded"
)

// deployResult is the outcome of a run, as -o json prints it.
type deployResult struct {
	Outcome     string               `json:"outcome"` // as intended, not as intended, would change, …
	Error       string               `json:"error,omitempty"`
	Diagnostics []diag.Diagnostic    `json:"diagnostics,omitempty"` // of the model
	From        *intent.FolderOrigin `json:"from,omitempty"`
	Report      *embedded.Report     `json:"report,omitempty"`
	DryRun      *deployLook          `json:"dry_run,omitempty"`

	code int
}

// deployLook is the result of a dry run.
type deployLook struct {
	Version   int                 `json:"version"`
	Changes   []deployDiff        `json:"changes"`
	Unchanged int                 `json:"unchanged"`
	Unknown   int                 `json:"unknown"`
	Other     int                 `json:"other"`
	Gone      []intent.ResourceID `json:"no_longer_managed"`
}

// deployDiff is what would change of one resource.
type deployDiff struct {
	Resource   intent.ResourceID                 `json:"resource"`
	Kind       intent.DiffKind                   `json:"kind"`
	Attributes map[string]intent.AttributeChange `json:"attributes,omitempty"`
	Reason     string                            `json:"reason,omitempty"`
}

// reportResult says how a deployment ended.
func reportResult(r embedded.Report, from intent.FolderOrigin) deployResult {
	out := deployResult{Outcome: "as intended", Report: &r, From: &from}
	if len(r.Left) > 0 {
		out.Outcome, out.code = "not as intended", 1
	}
	return out
}

// lookResult says what a dry run found.
func lookResult(l embedded.Look, from intent.FolderOrigin) deployResult {
	look := &deployLook{Version: l.Version, Changes: []deployDiff{}, Unknown: l.Unknown, Other: l.Other, Gone: l.Gone}
	for _, d := range l.Diffs {
		if d.Kind == intent.DiffUnmodified {
			look.Unchanged++
			continue
		}
		look.Changes = append(look.Changes, deployDiff{d.ID, d.Kind, d.Attributes, d.Reason})
	}
	out := deployResult{Outcome: "nothing would change", DryRun: look, From: &from}
	switch {
	case l.Unknown > 0:
		out.Outcome, out.code = "the dry run is incomplete", exitIncomplete
	case len(look.Changes) > 0:
		out.Outcome = "would change"
	}
	return out
}

// silentExit ends a command whose output says everything already.
func silentExit(code int) error {
	if code == 1 {
		return errPrinted
	}
	return exitCode(code)
}

// exitCode is an error that only has an exit status.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// deployPrinter prints how far a run is: in one line that changes on a terminal, else as lines. With -o json it prints
// nothing but the result.
type deployPrinter struct {
	out, err io.Writer
	json     bool
	live     bool
	width    func() int

	mu    sync.Mutex
	shown string    // the live line
	last  time.Time // when a line about the progress was printed
	state string
}

// progressLines is how often a line says how far a run is where there is no terminal.
const progressLines = 5 * time.Second

func newDeployPrinter(c *cobra.Command, json bool) *deployPrinter {
	p := &deployPrinter{out: c.OutOrStdout(), err: c.ErrOrStderr(), json: json, last: time.Now()}
	if file, ok := p.err.(*os.File); ok && !json && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		p.live = true
		p.width = func() int {
			width, _, err := term.GetSize(int(file.Fd()))
			if err != nil || width < 20 {
				return 80
			}
			return width
		}
	}
	return p
}

// show replaces the live line. The caller holds mu.
func (p *deployPrinter) show(line string) {
	if !p.live || line == p.shown {
		return
	}
	if runes := []rune(line); len(runes) >= p.width() {
		line = string(runes[:p.width()-2]) + "…"
	}
	fmt.Fprint(p.err, "\r\x1b[K"+line)
	p.shown = line
}

// clear removes the live line.
func (p *deployPrinter) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show("")
}

// line prints a line that stays, above the live one. The caller holds mu.
func (p *deployPrinter) line(text string) {
	if p.json {
		return
	}
	live := p.shown
	p.show("")
	fmt.Fprintln(p.err, text)
	p.show(live)
}

// say prints a line that stays.
func (p *deployPrinter) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(text)
}

// doing says what happens now.
func (p *deployPrinter) doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = what
	p.show(what + " …")
}

// progress says how far it is.
func (p *deployPrinter) progress(at embedded.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%s: %d of %d", p.state, at.Done, at.Total)
	var names []string
	for _, id := range at.Running {
		names = append(names, printable(id.String()))
	}
	if len(names) > 0 {
		text += "; now " + strings.Join(names, ", ")
	}
	p.show(text)
	if !p.live && at.Total > 0 && time.Since(p.last) >= progressLines {
		p.last = time.Now()
		p.line(text)
	}
}

// step prints what a handler changed or why it failed. What was as intended already is not worth a line.
func (p *deployPrinter) step(s embedded.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.Status != intent.StatusDeployed:
		p.line(fmt.Sprintf("%-9s %s: %s", word(s.Status), printable(s.Resource.String()), printable(s.Reason)))
	case s.Change != intent.NoChange && s.Change != "":
		p.line(fmt.Sprintf("%-9s %s", s.Change, printable(s.Resource.String())))
	}
}

// word returns a status for people.
func word(s intent.Status) string { return strings.ReplaceAll(string(s), "_", " ") }

// diagnostics prints the warnings and errors of a compile.
func (p *deployPrinter) diagnostics(out *compiler.Outcome) {
	if p.json {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show("")
	(&printer{}).text(p.err, out.Document.Warnings, out.Document.Diagnostics)
}

// result prints the outcome.
func (p *deployPrinter) result(r deployResult) error {
	if p.json {
		e := json.NewEncoder(p.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	if r.Report != nil && r.Report.Version > 0 {
		p.report(*r.Report)
	}
	if r.DryRun != nil {
		p.look(*r.DryRun)
	}
	return nil
}

// report prints what is not as intended and why, and a summary.
func (p *deployPrinter) report(r embedded.Report) {
	if len(r.Left) > 0 {
		fmt.Fprintln(p.out, "not as intended:")
	}
	for _, l := range r.Left {
		fmt.Fprintf(p.out, "  %s: %s\n", printable(l.Resource.String()), word(l.Status))
		for line := range strings.Lines(l.Reason) {
			fmt.Fprintln(p.out, "      "+printable(strings.TrimRight(line, "\n")))
		}
	}
	for _, id := range r.Orphans[:min(len(r.Orphans), shownChanges)] {
		fmt.Fprintf(p.out, "no longer managed, and left as it is: %s\n", printable(id.String()))
	}
	if more := len(r.Orphans) - shownChanges; more > 0 {
		fmt.Fprintf(p.out, "no longer managed, and left as they are: %d more\n", more)
	}
	fmt.Fprintf(p.out, "version %d: %d of %s as intended; %d deployed now, %d of them changed", r.Version, r.AsIntended,
		count(r.Total, "resource"), r.Ran, r.Changed)
	if r.Other > 0 {
		fmt.Fprintf(p.out, "; %s of other agents left alone", count(r.Other, "resource"))
	}
	fmt.Fprintln(p.out)
}

// look prints what would change.
func (p *deployPrinter) look(l deployLook) {
	words := map[intent.DiffKind]string{
		intent.DiffAdded: "create", intent.DiffModified: "change", intent.DiffDeleted: "purge",
		intent.DiffUnknown: "unknown", intent.DiffAgentDown: "unknown", intent.DiffUndefined: "undefined",
		intent.DiffSkipped: "behind",
	}
	for _, d := range l.Changes {
		fmt.Fprintf(p.out, "%-9s %s\n", words[d.Kind], printable(d.Resource.String()))
		if d.Reason != "" {
			fmt.Fprintln(p.out, "            "+printable(d.Reason))
		}
		if d.Kind != intent.DiffModified {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
			a := d.Attributes[name]
			fmt.Fprintf(p.out, "            %s: %s → %s\n",
				printable(name), shortValue(a.Current), shortValue(a.Desired))
		}
	}
	for _, id := range l.Gone {
		fmt.Fprintf(p.out, "no longer managed, and left as it is: %s\n", printable(id.String()))
	}
	fmt.Fprintf(p.out, "dry run: %d would change, %d would not, %d unknown", len(l.Changes)-l.Unknown, l.Unchanged,
		l.Unknown)
	if l.Other > 0 {
		fmt.Fprintf(p.out, "; %s of other agents not looked at", count(l.Other, "resource"))
	}
	fmt.Fprintln(p.out)
}

// longestValue bounds what is shown of a value.
const longestValue = 60

// shortValue returns a value on one line.
func shortValue(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	if runes := []rune(string(text)); len(runes) > longestValue {
		return printable(string(runes[:longestValue])) + "…"
	}
	return printable(string(text))
}
