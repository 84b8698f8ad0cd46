package parity

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// Verdict says how two outcomes differ.
type Verdict string

// Verdicts, from the worst to the best.
const (
	Refused  Verdict = "refused"  // only the reference compiles the case
	Accepted Verdict = "accepted" // only we compile the case
	Model    Verdict = "model"    // the models differ
	Export   Verdict = "export"   // the models are the same, the resources differ
	Output   Verdict = "output"   // the output differs
	Files    Verdict = "files"    // the written files differ
	Kind     Verdict = "kind"     // the errors differ
	Line     Verdict = "line"     // the error is the same, on another line
	Warning  Verdict = "warning"  // the warnings differ
	Message  Verdict = "message"  // the error is the same, in other words or another column
	Same     Verdict = "same"
)

// Verdicts are all verdicts, from the worst to the best.
var Verdicts = []Verdict{Refused, Accepted, Model, Export, Output, Files, Kind, Line, Warning, Message, Same}

// Compare returns how our outcome differs from the reference's, and a text that shows it.
func Compare(want, got *Document) (Verdict, string) {
	switch {
	case want.Success && !got.Success:
		return Refused, "we say " + got.Error.String()
	case !want.Success && got.Success:
		return Accepted, "the reference says " + want.Error.String()
	case want.Success:
		if d := differentModel(want, got); d != "" {
			return Model, d
		}
		if d := otherExport(want, got); d != "" {
			return Export, d
		}
	}
	if !slices.Equal(want.Output, got.Output) {
		return Output, different(want.Output, got.Output)
	}
	if d := different(want.Files, got.Files); d != "" {
		return Files, d
	}
	if !want.Success {
		both := fmt.Sprintf("want %s\n got %s", want.Error, got.Error)
		switch {
		case !sameKind(want.Error, got.Error):
			return Kind, both
		case !sameLine(want.Error, got.Error):
			return Line, both
		case !sameWords(want.Error, got.Error):
			return Message, both
		}
	}
	if !slices.Equal(want.Warnings, got.Warnings) {
		return Warning, different(want.Warnings, got.Warnings)
	}
	return Same, ""
}

// differentModel shows how two models differ. A recorded model may have been numbered by an older
// canonical, so that both are numbered anew before they are called different.
func differentModel(want, got *Document) string {
	model := func(d *Document) (string, string) {
		instances, variables := canonical(d.Instances, d.Variables)
		return text(instances), text(variables)
	}
	if different(want.Instances, got.Instances) == "" && different(want.Variables, got.Variables) == "" {
		return ""
	}
	a, x := model(want)
	b, y := model(got)
	switch {
	case a != b:
		return fmt.Sprintf("want %s\n got %s", a, b)
	case x != y && !(empty[x] && empty[y]):
		return fmt.Sprintf("want %s\n got %s", x, y)
	}
	return ""
}

// empty are the JSON values without content. Recorded outcomes leave them out.
var empty = map[string]bool{"null": true, "[]": true, "{}": true}

func different(want, got any) string {
	a, b := nameless(text(want)), nameless(text(got))
	if a == b || (empty[a] && empty[b]) {
		return ""
	}
	return fmt.Sprintf("want %s\n got %s", a, b)
}

// otherExport shows how two exports differ: the first resource that does.
func otherExport(want, got *Document) string {
	for i := range max(len(want.Resources), len(got.Resources)) {
		var a, b any
		if i < len(want.Resources) {
			a = want.Resources[i]
		}
		if i < len(got.Resources) {
			b = got.Resources[i]
		}
		if d := different(a, b); d != "" {
			return d
		}
	}
	return cmp.Or(different(want.ResourceSets, got.ResourceSets), different(want.RemovedSets, got.RemovedSets),
		different(want.Unknowns, got.Unknowns))
}

func sameKind(a, b *Error) bool {
	return a.Kind == b.Kind && slices.EqualFunc(a.Causes, b.Causes, func(x, y Error) bool { return sameKind(&x, &y) })
}

func sameLine(a, b *Error) bool {
	return a.File == b.File && a.Line == b.Line &&
		slices.EqualFunc(a.Causes, b.Causes, func(x, y Error) bool { return sameLine(&x, &y) })
}

var (
	address = regexp.MustCompile(`0x[0-9a-f]+`)
	serial  = regexp.MustCompile(`(::[A-Za-z_]\w*) [0-9a-f]{2,16}\b`)
)

// nameless replaces the addresses in a text by which Python names instances and other objects.
func nameless(s string) string {
	return serial.ReplaceAllString(address.ReplaceAllString(s, "0x0"), "$1 0")
}

// wordsOfProjectFiles are the kinds of errors about project.yml, module.yml, setup.cfg and requirements.
// Ordain has words of its own for these, which the tests of compiler/module check.
var wordsOfProjectFiles = map[string]bool{"InvalidMetadata": true, "InvalidRequirement": true}

// sameWords compares messages, without addresses of Python objects, and columns, where the reference
// knows them.
func sameWords(a, b *Error) bool {
	if !wordsOfProjectFiles[a.Kind] &&
		(nameless(a.Message) != nameless(b.Message) || (a.Column > 0 && a.Column != b.Column)) {
		return false
	}
	return slices.EqualFunc(a.Causes, b.Causes, func(x, y Error) bool { return sameWords(&x, &y) })
}

// String writes the error on one line.
func (e *Error) String() string {
	if e == nil {
		return "no error"
	}
	s := fmt.Sprintf("%s at %s:%d:%d: %s", e.Kind, e.File, e.Line, e.Column, e.Message)
	for _, c := range e.Causes {
		s += " [" + c.String() + "]"
	}
	return s
}
