package parity

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// Verdict says how far two outcomes agree.
type Verdict string

// Verdicts, from the worst to the best.
const (
	Refused  Verdict = "refused"  // the reference compiles it, we do not
	Accepted Verdict = "accepted" // the reference refuses it, we do not
	Model    Verdict = "model"    // another model
	Export   Verdict = "export"   // the same model, other resources
	Output   Verdict = "output"   // something else is printed
	Files    Verdict = "files"    // other files are written
	Kind     Verdict = "kind"     // another error
	Line     Verdict = "line"     // the same error elsewhere
	Warning  Verdict = "warning"  // other warnings
	Message  Verdict = "message"  // the same error in other words, or another column
	Same     Verdict = "same"
)

// Verdicts lists them from the worst to the best.
var Verdicts = []Verdict{Refused, Accepted, Model, Export, Output, Files, Kind, Line, Warning, Message, Same}

// Compare says how our outcome differs from the reference's, and where.
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

// differentModel numbers instances again before it says that models differ: what
// is recorded may have been numbered in another way.
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

// empty are the ways to write nothing: what is recorded leaves it out.
var empty = map[string]bool{"null": true, "[]": true, "{}": true}

func different(want, got any) string {
	a, b := nameless(text(want)), nameless(text(got))
	if a == b || (empty[a] && empty[b]) {
		return ""
	}
	return fmt.Sprintf("want %s\n got %s", a, b)
}

// otherExport says how what is exported differs: the first resource that does.
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
	return cmp.Or(
		different(want.ResourceSets, got.ResourceSets),
		different(want.RemovedSets, got.RemovedSets),
		different(want.Unknowns, got.Unknowns),
	)
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

// nameless is a text without the addresses that Python has for names of
// instances and other objects.
func nameless(s string) string {
	return serial.ReplaceAllString(address.ReplaceAllString(s, "0x0"), "$1 0")
}

// wordsOfProjectFiles are the kinds of errors about project.yml, module.yml, setup.cfg
// and requirements. Ordain has words of its own for these, which the tests of
// compiler/module hold; the recorded ones are inmanta-core's.
var wordsOfProjectFiles = map[string]bool{"InvalidMetadata": true, "InvalidRequirement": true}

// sameWords also wants the column, where the reference knows it. Addresses of
// Python objects are not compared.
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
		return "nothing"
	}
	s := fmt.Sprintf("%s at %s:%d:%d: %s", e.Kind, e.File, e.Line, e.Column, e.Message)
	for _, c := range e.Causes {
		s += " [" + c.String() + "]"
	}
	return s
}
