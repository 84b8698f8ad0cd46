// Package format writes model files in one canonical way.
//
//	text ──syntax.Lexemes──▶ tokens with their comments ──layout──▶ document ──printer──▶ text
//
// It works on tokens and not on the tree, because the tree has neither comments nor the way in which
// constants are written. Only blanks, line ends and the commas before a closing bracket change. Each
// result is parsed and its tree compared with that of the input, so that the meaning cannot change.
package format

import (
	"bytes"
	"errors"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

// Width is the number of columns after which lines are broken, if they can be.
const Width = 100

// errUnfaithful reports a fault of this package, instead of a text that means something else.
var errUnfaithful = errors.New(
	"the formatted text would not mean the same; this is a fault of Ordain: please report it with the file",
)

// Source formats the text of a model file. For a text that does not parse it returns the *syntax.Error
// of the parser.
func Source(info syntax.FileInfo, text []byte) ([]byte, error) {
	before, err := syntax.Parse(info, text)
	if err != nil {
		return nil, err
	}
	out, err := layout(text)
	if err != nil {
		return nil, err
	}
	after, err := syntax.Parse(info, out)
	if err != nil || !Same(before, after) || remarks(text) != remarks(out) {
		return nil, errUnfaithful
	}
	return out, nil
}

func layout(text []byte) ([]byte, error) {
	text, lexemes, err := syntax.Lexemes(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokenize(text, lexemes)}
	file := p.file()
	if p.lost || !p.done() {
		return nil, errUnfaithful
	}
	var out bytes.Buffer
	render(&out, file)
	return out.Bytes(), nil
}

// remarks is the text of all comments, without blanks.
func remarks(text []byte) string {
	text, lexemes, err := syntax.Lexemes(text)
	if err != nil {
		return ""
	}
	var b strings.Builder
	add := func(s string) {
		for field := range strings.FieldsSeq(s) {
			b.WriteString(field)
		}
	}
	for _, t := range tokenize(text, lexemes) {
		for _, c := range t.before {
			add(c.text)
		}
		add(t.after)
	}
	return b.String()
}
