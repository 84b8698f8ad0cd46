package syntax

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A syntax error tells people what could have stood there, what does, and where
// to put it right, in words that need no grammar.
func TestSyntaxErrorsInWords(t *testing.T) {
	for _, c := range []struct {
		text, expected, found, hint string
		focus                       string // line:column
	}{
		{"entity Host\n    string name\nend\n", "`extends` or `:`", "`string`",
			"a `:` is missing at the end of line 1", "1:12"},
		{"if true\n    x = 1\nend\n", "`:` or an operator", "`x`", "a `:` is missing at the end of line 1", "1:8"},
		{"entity A:\n    string a\n\nentity B:\nend\n",
			"`end`, `dict`, `=` or a name that begins with a small letter", "`entity`",
			"`entity` begins a new definition, and the `entity` of line 1 has no `end` yet", "4:1"},
		{"implementation a for A:\n    if x:\n        y = 1\nend\nz = 1\n", "`end` or a statement",
			"the end of the file", "the `if` of line 2 has no `end`", "2:5"},
		{"x = f(1,\n      2\ny = 3\n", "`)` or `,`", "`y`", "the `(` of line 1 is not closed", "1:6"},
		{"x = if true: 1\n", "a value", "`if`",
			"`if` is a statement and has no value: write `condition ? this : that`", "1:5"},
		{"x = {a: 1}\n", "a string or `}`", "`a`", "the keys of a dict are strings: write \"a\"", "1:6"},
		{"x = 1\nend\n", "a definition or a statement", "`end`",
			"there is nothing open that this `end` could close: look for one `end` too many above, or a missing `:`",
			"2:1"},
		{"A.x [1] --\n", "a name", "the end of the file", "is an `end`, a bracket or a value missing?", "1:11"},
	} {
		_, err := Parse(FileInfo{Path: "main.cf", Namespace: "__config__"}, []byte(c.text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q is no syntax error: %v", c.text, err)
			continue
		}
		focus := fmt.Sprintf("%d:%d", e.Focus.Start.Line, e.Focus.Start.Col)
		if !strings.HasSuffix(e.Expected, c.expected) || e.Found != c.found || e.Hint != c.hint || focus != c.focus {
			t.Errorf("%q\nexpected %s\nfound    %s\nhint     %s\nfocus    %s", c.text, e.Expected, e.Found, e.Hint,
				focus)
		}
	}
}
