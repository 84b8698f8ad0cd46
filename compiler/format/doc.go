// Package format writes model files in one canonical way.
//
//	text ──syntax.Lexemes──▶ tokens with their comments ──layout──▶ document ──printer──▶ text
//
// It works on tokens and not on the tree, because the tree has neither comments
// nor the way in which constants are written. Only blanks, line ends and the
// commas before a closing bracket change. Each result is parsed again and
// compared with the tree of the input: what would change the meaning is refused.
package format

import (
	"bytes"
	"errors"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

// Width is the number of columns that a line has where it can be broken.
const Width = 100

// errUnfaithful is a fault of this package, which the caller sees instead of a
// text that means something else.
var errUnfaithful = errors.New(
	"the formatted text would not mean the same; this is a fault of Ordain: please report it with the file",
)

// Source formats the text of a model file. A text that does not parse gives the
// *syntax.Error of the parser.
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

// remarks is all that comments say, without blanks.
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
