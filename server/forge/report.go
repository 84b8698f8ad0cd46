package forge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/contents"
	"ordain.dev/ordain/server/forge/client"
)

// Report is the content of the comment on a pull request. All of its texts but
// Environment and Page are written by strangers.
type Report struct {
	Environment string
	Pull        intent.PullRequest
	Page        string // of the preview in the console; empty: none can be given
	Command     string // that approves it
	Diffs       []intent.ResourceDiff
	Lines       map[intent.ResourceID]map[string]*linediff.Diff // of Diffs, where lines say more than values
	Review
	Version int // the active one that it is compared with
	// Decided has, by resource and attribute, the line that most likely changed the value.
	Decided map[intent.ResourceID]map[string]string
}

// Marker is the line by which the comment of an environment is known.
func Marker(env intent.EnvironmentID) string { return "<!-- ordain preview " + env.String() + " -->" }

const (
	// maxComment bounds the comment; GitHub takes 65,536 characters.
	maxComment = 60_000
	// maxValue bounds one value of an attribute.
	maxValue = 400
	// maxResources bounds how many resources are told of in full.
	maxResources = 200
)

// Text is the comment.
func (r Report) Text() string {
	w := &writer{most: maxComment - 1000} // room for the end
	w.line("%s", Marker(r.Pull.Environment))
	w.line("### Ordain preview of `%s`", client.Code(r.Environment))
	w.line("")
	if r.Refused != "" && r.Pull.State == intent.PullIsOpen {
		w.line("**It would be refused as it is:** %s", plain(r.Refused))
		w.line("")
	}
	r.state(w)
	if w.cut {
		w.force("\n…\n\nThis is too long for a comment." + r.linkWith("The whole is in the console"))
	}
	r.end(w)
	return w.String()
}

// state writes what is known, by the state of the preview.
func (r Report) state(w *writer) {
	p := r.Pull
	switch p.PreviewState() {
	case intent.PreviewApproval:
		why := "its author may not write to the repository"
		if p.Fork {
			why = "it comes from a fork"
		}
		w.line(
			"**Needs approval.** The code of `%s` is not run, since %s. Somebody who may decide that looks at "+
				"exactly this commit and approves it%s:",
			client.Code(p.Short()),
			why,
			r.link(" in the console"),
		)
		w.line("")
		w.line("```\n%s\n```", r.Command)
		w.line("")
		w.line("Commits that are pushed later need another approval.")
	case intent.PreviewNone, intent.PreviewRunning:
		w.line("Computing what `%s` would change …%s", client.Code(p.Short()), r.linkWith(" Progress"))
	case intent.PreviewClosed:
		w.line("The pull request is %s; its preview was removed.", p.State)
	case intent.PreviewOld:
		w.line("The preview of `%s` was cancelled.%s", client.Code(p.Short()), r.linkWith(" Run it again"))
	case intent.PreviewFailed:
		r.failure(w)
	case intent.PreviewDone:
		r.result(w)
	}
}

func (r Report) failure(w *writer) {
	reason := r.Pull.Problem
	if r.Pull.Preview != nil && reason == "" {
		reason = r.Pull.Preview.Reason
	}
	w.line("**No preview of `%s`:** %s", client.Code(r.Pull.Short()), plain(reason))
	if len(r.Errors) > 0 {
		w.line("")
		w.block("", strings.Join(r.Errors, "\n"))
	}
	w.line("%s", r.linkWith("The whole report"))
}

// counts of a preview.
func (r Report) counts() (created, changed, purged, same, unknown, undefined int) {
	for _, d := range r.Diffs {
		switch {
		case d.Kind == intent.DiffAdded:
			created++
		case d.Kind == intent.DiffModified:
			changed++
		case d.Kind == intent.DiffDeleted:
			purged++
		case d.Kind == intent.DiffUnmodified:
			same++
		case d.Kind.Unknown():
			unknown++
		default:
			undefined++
		}
	}
	return
}

// reportKinds are the parts of the list of resources, in their order.
var reportKinds = []struct {
	title string
	is    func(intent.DiffKind) bool
}{
	{"Purged", func(k intent.DiffKind) bool { return k == intent.DiffDeleted }},
	{"Changed", func(k intent.DiffKind) bool { return k == intent.DiffModified }},
	{"Created", func(k intent.DiffKind) bool { return k == intent.DiffAdded }},
	{"Unknown", intent.DiffKind.Unknown},
	{"Undefined", func(k intent.DiffKind) bool { return k == intent.DiffUndefined || k == intent.DiffSkipped }},
}

func (r Report) result(w *writer) {
	created, changed, purged, same, unknown, undefined := r.counts()
	switch {
	case created+changed+purged+unknown+undefined+len(r.Gone)+len(r.Clusters) == 0:
		w.line("**It would change nothing.** All %d resources were looked at.", same)
	case created+changed+purged+unknown+undefined+len(r.Gone) == 0:
		w.line("**It would change clusters only.** All %d resources were looked at.", same)
	default:
		w.line("| created | changed | purged | no longer managed | unchanged | unknown | undefined |")
		w.line("|---|---|---|---|---|---|---|")
		w.line("| %d | %d | %d | %d | %d | %d | %d |", created, changed, purged, len(r.Gone), same, unknown, undefined)
	}
	r.policies(w)
	if len(r.Clusters) > 0 {
		w.line("\n#### Clusters")
		w.block("", strings.TrimRight(strings.Join(r.Clusters, "\n"), "\n"))
	}
	shown := 0
	for _, kind := range reportKinds {
		titled := false
		for _, d := range r.Diffs {
			if !kind.is(d.Kind) {
				continue
			}
			if shown++; shown > maxResources {
				w.cut = true
				return
			}
			if !titled {
				w.line("\n#### %s", kind.title)
				titled = true
			}
			diff(w, d, r.Lines[d.ID])
			r.decided(w, d)
		}
	}
	if len(r.Gone) > 0 {
		w.line("\n#### No longer managed\n\nThese stay as they are, and nobody looks after them.\n")
		for i, id := range r.Gone {
			if i == maxResources {
				w.cut = true
				return
			}
			w.line("- `%s`", client.Code(id.String()))
		}
	}
}

// policies writes what would hold up the version before it is deployed.
func (r Report) policies(w *writer) {
	if r.Hold != nil {
		how := "a person would have to confirm it"
		if !r.Hold.Confirmable() {
			how = "nobody could confirm it as it is"
		}
		w.line("\n> **This would be held:** %s; %s.", plain(r.Hold.Text), how)
	}
	for _, text := range r.Windows {
		w.line("\n> **This would wait:** %s.", plain(text))
	}
}

// diff shows one resource.
func diff(w *writer, d intent.ResourceDiff, lines map[string]*linediff.Diff) {
	if d.Kind.Unknown() || len(d.Attributes) == 0 {
		text := fmt.Sprintf("- `%s`", client.Code(d.ID.String()))
		if d.Reason != "" {
			text += ": " + plain(d.Reason)
		}
		if !d.Behind.IsZero() {
			text += fmt.Sprintf(" (behind `%s`, which would be created first)", client.Code(d.Behind.String()))
		}
		w.line("%s", text)
		return
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		change := d.Attributes[name]
		if text := lineText(d.ID, name, lines[name]); text != "" {
			fmt.Fprintf(&b, "  %s:\n%s", name, text)
			continue
		}
		was, now := value(name, change.Current), value(name, change.Desired)
		if d.Kind == intent.DiffAdded {
			fmt.Fprintf(&b, "+ %s: %s\n", name, indent(now))
			continue
		}
		fmt.Fprintf(&b, "- %s: %s\n+ %s: %s\n", name, indent(was), name, indent(now))
	}
	w.line("- `%s`", client.Code(d.ID.String()))
	w.block("diff", strings.TrimRight(b.String(), "\n"))
}

// value shows a value of an attribute, short. What may be a secret is masked:
// a comment is read by more people than the console.
func value(name string, v any) string {
	if contents.SecretName(name) && v != nil && v != "" {
		return intent.Secret
	}
	text, ok := contents.Masked(v).(string)
	if !ok {
		b, err := json.Marshal(contents.Masked(v))
		if err != nil {
			return "?"
		}
		text = string(b)
	}
	if len(text) > maxValue {
		text = strings.ToValidUTF8(text[:maxValue], "") + fmt.Sprintf("… (%d bytes)", len(text))
	}
	return text
}

// indent keeps the lines of a value below its name.
func indent(s string) string { return strings.ReplaceAll(client.Tame(s), "\n", "\n    ") }

func (r Report) end(w *writer) {
	p := r.Pull
	var parts []string
	if p.Head != "" {
		parts = append(parts,
			fmt.Sprintf("computed for `%s` merged into `%s`", client.Code(p.Short()), client.Code(p.Base)))
	}
	if p.PreviewState() == intent.PreviewDone && r.Version > 0 {
		parts = append(parts, fmt.Sprintf("compared with the live system, where version %d is deployed", r.Version))
	}
	if d := p.Preview; d != nil && d.Ended != nil && p.PreviewState() != intent.PreviewClosed {
		parts = append(parts, "took "+d.Ended.Sub(d.Date).Round(100*time.Millisecond).String())
	}
	if p.Approved != "" && p.Approved == p.Head {
		parts = append(parts, "approved by "+plain(p.ApprovedBy))
	}
	text := strings.Join(parts, " · ")
	if r.Page != "" {
		text += " · [console](" + r.Page + ")"
	}
	w.force("\n<sub>" + strings.TrimPrefix(text, " · ") + "</sub>\n")
}

// linkWith is a link to the page of the run, as a sentence with this text; it is empty when there is no page.
func (r Report) linkWith(text string) string {
	if r.Page == "" {
		return ""
	}
	space := ""
	if strings.HasPrefix(text, " ") {
		space = " "
	}
	return space + "[" + strings.TrimSpace(text) + "](" + r.Page + ")."
}

func (r Report) link(text string) string {
	if r.Page == "" {
		return ""
	}
	return " [" + strings.TrimSpace(text) + "](" + r.Page + ")"
}

// writer collects lines until there is no more room.
type writer struct {
	strings.Builder
	most int
	cut  bool
}

func (w *writer) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.cut || w.Len()+len(text)+1 > w.most {
		w.cut = true
		return
	}
	w.WriteString(text + "\n")
}

// block writes text that is shown as it is: the fence is longer than any in it.
func (w *writer) block(language, text string) {
	text = client.Tame(text)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	w.line("\n%s%s\n%s\n%s\n", fence, language, text, fence)
}

func (w *writer) force(text string) { w.WriteString(text) }

// plain makes text that is only text: no markup, no mention, no link, no reference.
func plain(s string) string {
	s = strings.Join(strings.Fields(client.Tame(s)), " ")
	if len(s) > 2000 {
		s = strings.ToValidUTF8(s[:2000], "") + "…"
	}
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "`", "'") + "`"
}
