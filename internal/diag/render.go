package diag

import (
	"fmt"
	"strings"
)

// Style says how diagnostics are shown.
type Style struct {
	// Colour: with the colours of a terminal.
	Colour bool
}

// Render renders a diagnostic as plain text for a terminal or a page:
//
//	error[E0203]: Could not set attribute `x` on instance `__config__::A`
//	  --> main.cf:3:1
//	   |
//	 3 | a.x = 4
//	   | ^^^^^^^
//	   = help: x was set before at main.cf:2
func (d Diagnostic) Render() string { return Style{}.Render(d) }

// Render renders a diagnostic in this style.
func (s Style) Render(d Diagnostic) string {
	p := painter{Style: s}
	p.whole(d.plain(), "")
	return p.String()
}

// RenderAll renders diagnostics one after the other. Of very many it renders the first ones and says
// how many there are beside them.
func (s Style) RenderAll(list []Diagnostic) string {
	const most = 40
	p := painter{Style: s}
	for i, d := range list {
		if i == most {
			fmt.Fprintf(&p, "and %d more of the same compile; `-o json` lists them all\n", len(list)-most)
			break
		}
		if i > 0 {
			p.WriteByte('\n')
		}
		p.whole(d.plain(), "")
	}
	return p.String()
}

// Closing is the last line: how many errors there are, and where to read more.
func (s Style) Closing(list []Diagnostic) string {
	text := fmt.Sprintf("%d error%s", len(list), plural(len(list)))
	if code := list[0].Code; code != "" {
		text += "; `ordain explain " + code + "` explains the first"
		if len(list) == 1 {
			text = "`ordain explain " + code + "` explains this error"
		}
	}
	p := painter{Style: s}
	return "\n" + p.paint(cyan, text) + "\n"
}

// Unique returns the diagnostics without duplicates.
func Unique(list []Diagnostic) []Diagnostic {
	seen := map[string]bool{}
	var out []Diagnostic
	for _, d := range list {
		key := d.Kind + "\n" + d.Message
		if d.Location != nil {
			key += d.Location.String()
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, d)
		}
	}
	return out
}

// Escape sequences of terminals.
const (
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	blue   = "\x1b[1;34m"
	cyan   = "\x1b[36m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

type painter struct {
	Style
	strings.Builder
}

func (p *painter) paint(colour, text string) string {
	if !p.Colour || text == "" {
		return text
	}
	return colour + text + plain
}

func (d Diagnostic) colour() string {
	if d.Severity == Warning {
		return yellow
	}
	return red
}

// whole draws a diagnostic and, indented below it, its causes.
func (p *painter) whole(d Diagnostic, indent string) {
	head := string(d.Severity)
	if d.Code != "" {
		head += "[" + d.Code + "]"
	}
	message := strings.ReplaceAll(strings.TrimRight(d.Message, "\n"), "\n", "\n"+indent+"  ")
	fmt.Fprintf(p, "%s%s: %s\n", indent, p.paint(d.colour(), head), p.paint(bold, message))
	gutter := "  "
	if at := d.Place(); at != nil {
		gutter = strings.Repeat(" ", len(fmt.Sprint(at.Line))+1)
		p.source(d, indent, gutter)
	}
	note := func(label, text string) {
		if text == "" {
			return
		}
		text = strings.ReplaceAll(text, "\n", "\n"+indent+gutter+"   ")
		fmt.Fprintf(p, "%s%s %s %s %s\n", indent, gutter, p.paint(blue, "="), p.paint(cyan, label+":"), text)
	}
	note("expected", d.Expected)
	note("found", d.Found)
	for _, r := range d.Related {
		text := r.Label + " at " + r.Location.String()
		if source := strings.TrimSpace(r.Source); source != "" {
			short, _ := shorten(source, 0)
			text += "   " + p.paint(cyan, short)
		}
		note("note", text)
	}
	note("help", d.Hint)
	if d.Repeats > 0 {
		note("note", fmt.Sprintf("the same goes wrong for %d more instance%s", d.Repeats, plural(d.Repeats)))
	}
	if len(d.Also) > 0 {
		note("note", "the same is wrong at "+places(d.Also))
	}
	p.python(d.Python, indent+gutter)
	p.chain(d.Chain, indent+gutter)
	for _, cause := range d.Causes {
		fmt.Fprintf(p, "%s  caused by:\n", indent)
		cause = cause.beside(d)
		p.whole(cause, indent+"    ")
	}
}

// places lists places, the first few of many.
func places(list []Location) string {
	const most = 5
	names := make([]string, 0, most)
	for _, l := range list[:min(len(list), most)] {
		names = append(names, l.String())
	}
	text := strings.Join(names, ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more place%s", more, plural(more))
	}
	return text
}

// beside is a cause without what is already drawn above it.
func (d Diagnostic) beside(above Diagnostic) Diagnostic {
	if d.Hint == above.Hint {
		d.Hint = ""
	}
	if d.Expected == above.Expected {
		d.Expected, d.Found = "", ""
	}
	if len(d.Related) > 0 && len(above.Related) > 0 && d.Related[0] == above.Related[0] {
		d.Related = nil
	}
	if at, seen := d.Place(), above.Place(); at != nil && seen != nil &&
		(*at == *seen || above.Location != nil && *at == *above.Location) {
		d.Location, d.Focus, d.Source = nil, nil, ""
	}
	return d
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// source draws the place, its line, and a caret below.
func (p *painter) source(d Diagnostic, indent, gutter string) {
	l := d.Place()
	bar := p.paint(blue, "|")
	fmt.Fprintf(p, "%s%s%s %s\n", indent, gutter, p.paint(blue, "-->"), l)
	if strings.TrimSpace(d.Source) == "" {
		return
	}
	source, shift := shorten(d.Source, l.Column)
	fmt.Fprintf(p, "%s%s %s\n", indent, gutter, bar)
	fmt.Fprintf(p, "%s %s %s %s\n", indent, p.paint(blue, fmt.Sprint(l.Line)), bar,
		strings.ReplaceAll(source, "\t", " "))
	if l.Column > 0 {
		marks := p.paint(d.colour(), d.caret(shift+len([]rune(source))))
		fmt.Fprintf(p, "%s%s %s %s%s\n", indent, gutter, bar, strings.Repeat(" ", max(0, l.Column-1-shift)), marks)
	}
}

// widest is how many columns of a line are drawn.
const widest = 160

// shorten cuts a very long line to the part near a column. shift is how many columns are cut off at
// the left.
func shorten(line string, column int) (cut string, shift int) {
	runes := []rune(line)
	if len(runes) <= widest {
		return line, 0
	}
	if shift = column - widest/2; shift < 0 {
		shift = 0
	}
	shift = min(shift, max(0, len(runes)-widest))
	return string(runes[shift:min(len(runes), shift+widest)]), shift
}

// caret marks the place in its line, which is drawn up to column end.
func (d Diagnostic) caret(end int) string {
	l := d.Place()
	width := 1
	if (l.EndLine == l.Line || l.EndLine == 0) && l.EndColumn > l.Column {
		width = l.EndColumn - l.Column
	} else if l.EndLine > l.Line {
		width = end - l.Column + 1
	}
	if l.Column <= end {
		width = min(width, end-l.Column+1)
	}
	return strings.Repeat("^", max(1, width))
}

// chain draws how the compile got to the place.
func (p *painter) chain(steps []Step, indent string) {
	for _, s := range steps {
		text := "instance " + p.paint(bold, s.Instance)
		if s.Implementation != "" {
			text = "in implementation " + p.paint(bold, s.Implementation) + " of " + p.paint(bold, s.Instance)
		}
		fmt.Fprintf(p, "%s %s %s\n", indent, p.paint(blue, "~"), text)
		if s.Made != nil {
			where := "made at " + s.Made.String()
			if source := strings.TrimSpace(s.Source); source != "" {
				short, _ := shorten(source, 0)
				where += "   " + p.paint(cyan, short)
			}
			fmt.Fprintf(p, "%s     %s\n", indent, where)
		}
		if s.Skipped > 0 {
			fmt.Fprintf(p, "%s   … %d more …\n", indent, s.Skipped)
		}
	}
}

// python draws the lines of a plug-in that led to an exception.
func (p *painter) python(frames []Frame, indent string) {
	for _, f := range frames {
		where := f.Location.String()
		if f.Function != "" {
			where += ", in " + f.Function
		}
		fmt.Fprintf(p, "%s %s %s\n", indent, p.paint(blue, "~"), where)
		if source := strings.TrimSpace(f.Source); source != "" {
			fmt.Fprintf(p, "%s     %s\n", indent, p.paint(cyan, source))
		}
	}
}
