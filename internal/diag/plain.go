package diag

import (
	"strings"
)

// plain is the diagnostic in plain text: models, modules and the names of their files may come from
// anybody.
func (d Diagnostic) plain() Diagnostic {
	d.Message, d.Hint = PlainText(d.Message), PlainText(d.Hint)
	d.Expected, d.Found = PlainText(d.Expected), PlainText(d.Found)
	d.Kind, d.Source = PlainLine(d.Kind), plainSource(d.Source)
	d.Location, d.Focus = d.Location.plain(), d.Focus.plain()
	d.Chain = each(d.Chain, func(s Step) Step {
		s.Instance, s.Implementation, s.Source = PlainLine(
			s.Instance,
		), PlainLine(s.Implementation), plainSource(s.Source)
		s.Made = s.Made.plain()
		return s
	})
	d.Related = each(d.Related, func(r Related) Related {
		r.Label, r.Location, r.Source = PlainLine(r.Label), *r.Location.plain(), plainSource(r.Source)
		return r
	})
	d.Also = each(d.Also, func(l Location) Location { return *l.plain() })
	d.Python = each(d.Python, func(f Frame) Frame {
		f.Location, f.Function, f.Source = *f.Location.plain(), PlainLine(f.Function), plainSource(f.Source)
		return f
	})
	d.Causes = each(d.Causes, Diagnostic.plain)
	return d
}

func (l *Location) plain() *Location {
	if l == nil {
		return nil
	}
	clean := *l
	clean.File = PlainLine(l.File)
	return &clean
}

// plainSource is a line of a file in plain text, without its line end.
func plainSource(line string) string {
	return PlainLine(strings.TrimRight(line, "\r\n"))
}

func each[T any](list []T, clean func(T) T) []T {
	out := make([]T, 0, len(list))
	for _, one := range list {
		out = append(out, clean(one))
	}
	return out
}
