package syntax

import (
	"fmt"
	"slices"
	"strings"
)

// explain adds to a syntax error what could have followed, what the parser found instead, and
// where a person should look. The reference's message stays as it is.
func (e *Error) explain(t *exactTables, stack []int16, s *scanner, kind int, tok, before token) {
	expected := t.expected(stack)
	e.Expected = inWords(expected)
	e.Found = "`" + abbreviated(tok.text) + "`"
	if kind == 0 {
		e.Found = "the end of the file"
	} else if tok.start.Line > 0 {
		e.Focus = s.spanOf(tok.start, tok.end)
	}
	blocks, brackets := openAt(s.text, tok, kind)
	above := before.end.Line > 0 && (kind == 0 || before.end.Line < tok.start.Line)
	switch {
	case len(brackets) > 0 && above:
		b := brackets[len(brackets)-1]
		e.Hint = fmt.Sprintf("the `%s` of line %d is not closed", b.text, b.start.Line)
		e.Focus = s.spanOf(b.start, b.end)
	case above && slices.Contains(expected, "':'"):
		e.Hint = fmt.Sprintf("a `:` is missing at the end of line %d", before.end.Line)
		e.Focus = s.spanOf(before.end, Pos{before.end.Line, before.end.Col + 1})
	case kind == 0 && len(blocks) > 0:
		b := blocks[len(blocks)-1]
		e.Hint = fmt.Sprintf("the `%s` of line %d has no `end`", b.text, b.start.Line)
		e.Focus = s.spanOf(b.start, b.end)
	case opensTop[kind] && len(blocks) > 0:
		b := blocks[len(blocks)-1]
		e.Hint = fmt.Sprintf("`%s` begins a new definition, and the `%s` of line %d has no `end` yet", tok.text, b.text,
			b.start.Line)
	case kind == tIF && slices.Contains(expected, "tINT"):
		e.Hint = "`if` is a statement and has no value: write `condition ? this : that`"
	case kind == tFOR && slices.Contains(expected, "tINT"):
		e.Hint = "`for` is a statement and has no value: write `[x for x in list]`"
	case kind == tID && slices.Contains(expected, "tSTRING") && slices.Contains(expected, "'}'"):
		e.Hint = "the keys of a dict are strings: write \"" + tok.text + "\""
	case kind != 0 && slices.Contains(expected, "','"):
		e.Hint = "is a comma missing before it?"
	case kind == 0 && before.end.Line > 0:
		e.Focus = s.spanOf(before.end, Pos{before.end.Line, before.end.Col + 1})
	case kind == tEND && len(blocks) == 0 && len(brackets) == 0:
		e.Hint = "there is nothing open that this `end` could close: look for one `end` too many above, or a " +
			"missing `:`"
	}
}

// opensTop are the keywords that begin definitions, which are at the top level only.
var opensTop = map[int]bool{
	tENTITY:         true,
	tIMPLEMENTATION: true,
	tIMPLEMENT:      true,
	tINDEX:          true,
	tIMPORT:         true,
	tTYPEDEF:        true,
}

// expected lists the tokens that the parser would accept.
func (t *exactTables) expected(stack []int16) []string {
	var names []string
	for terminal := range t.terminals {
		if t.accepts(stack, terminal) {
			names = append(names, t.names[terminal])
		}
	}
	return names
}

// accepts reports whether the parser would shift a token, after any reductions.
func (t *exactTables) accepts(stack []int16, terminal int) bool {
	stack = slices.Clone(stack)
	for {
		state := stack[len(stack)-1]
		action := t.alone[state]
		if action == 0 {
			action = t.action[state][terminal]
		}
		switch {
		case action == 0:
			return false
		case action > 0 || action == -acceptRule-1:
			return true
		}
		rule := t.rules[-action-1]
		stack = stack[:len(stack)-len(rule.right)]
		stack = append(stack, t.jump[stack[len(stack)-1]][rule.left])
	}
}

// groups are sets of tokens for which people have one word. It is used when all tokens of all
// are expected and none of none; then the members are not listed one by one.
var groups = []struct {
	word      string
	all, none string
	members   string
}{
	{
		"a definition or a statement",
		"tENTITY tIMPORT tID",
		"",
		"tENTITY tIMPORT tIMPLEMENTATION tIMPLEMENT tTYPEDEF tINDEX tFOR tIF tID tCID " + values + " " + operators,
	},
	{"a statement", "tFOR tIF tID", "", "tFOR tIF tID tCID " + values + " " + operators},
	{"a value", "tINT tSTRING tID", "", "tID tCID " + values},
	{"a constant, such as a number, a string, true or null", "tINT tSTRING", "tID", values},
	{"an operator", "tCMP_OP tAND", "", operators},
	{"a name", "tID tCID", "", "tID tCID"},
	{"a name that begins with a small letter", "tID", "", "tID"},
	{"a name that begins with a capital", "tCID", "", "tCID"},
}

const (
	values    = "tINT tFLOAT tSTRING tRSTRING tFSTRING tMLS tTRUE tFALSE tNULL tNOT '(' '[' '{' tMINUS_OP"
	operators = "tCMP_OP tAND tOR tPLUS_OP tMINUS_OP '*' '%' tDIVISION_OP tDOUBLE_STAR tIN tNOT '?' '.' tIS '[' tMLS"
)

// words are the names that people have for single tokens.
var words = map[string]string{
	"$end": "the end of the file", "tEND": "`end`", "tAS": "`as`", "tEXTENDS": "`extends`", "tFOR": "`for`",
	"tUSING": "`using`",
	"tWHEN":  "`when`", "tIN": "`in`", "tIS": "`is defined`", "tDEFINED": "`defined`", "tIF": "`if`",
	"tELSE": "`else`", "tELIF": "`elif`",
	"tPARENTS": "`parents`", "tMATCHING": "`matching`", "tREGEX": "", "tREL": "`--`", "tPEQ": "`+=`",
	"tSEP": "`::`", "tDICT": "`dict`", "tUNDEF": "`undef`", "tINT": "a whole number", "tSTRING": "a string",
	"tMLS":     "a text in three quotes",
	"tRSTRING": "", "tFSTRING": "", "tDOUBLE_STAR": "`**`", "tLOW": "", "tBAD": "", "tFLOAT": "a number",
	"tNOT": "`not`", "tCMP_OP": "a comparison",
}

// inWords says what may follow, with the most common first.
func inWords(expected []string) string {
	var said, later []string
	left := slices.Clone(expected)
	for _, g := range groups {
		if !containsAll(left, g.all) || g.none != "" && containsAll(left, g.none) {
			continue
		}
		later = append(later, g.word)
		left = slices.DeleteFunc(left,
			func(name string) bool { return slices.Contains(strings.Fields(g.members), name) })
	}
	for _, name := range left {
		word, known := words[name]
		if !known && len(name) == 3 && name[0] == '\'' {
			word = "`" + name[1:2] + "`"
		}
		if word != "" && !(name == "$end" && len(left) > 1) {
			said = append(said, word)
		}
	}
	const most = 6
	said = append(said, later...)
	if len(said) > most {
		said = said[:most]
	}
	switch len(said) {
	case 0:
		return ""
	case 1:
		return said[0]
	}
	return strings.Join(said[:len(said)-1], ", ") + " or " + said[len(said)-1]
}

func containsAll(have []string, wanted string) bool {
	for _, name := range strings.Fields(wanted) {
		if !slices.Contains(have, name) {
			return false
		}
	}
	return true
}

// openAt lists the blocks and brackets that are open before a token. When the indentation of an
// `end` differs from that of the innermost block, it is taken to close a block further out.
func openAt(text string, until token, untilKind int) (blocks, brackets []token) {
	s := newScanner(&File{}, text)
	type opened struct {
		token
		indent int32
	}
	var open, suspects []opened
	head, fresh, line, indent := false, false, int32(0), int32(0)
	for {
		var tok token
		kind := s.next(&tok)
		if kind <= 0 || s.err != nil || untilKind != 0 && tok.start == until.start {
			break
		}
		if tok.start.Line != line {
			line, indent = tok.start.Line, tok.start.Col
		}
		fresh = len(brackets) == 0
		switch kind {
		case '(', '[', '{':
			brackets = append(brackets, tok)
		case ')', ']', '}':
			if len(brackets) > 0 {
				brackets = brackets[:len(brackets)-1]
			}
		case tIMPLEMENTATION:
			head = true // its `for` is part of it
			open = append(open, opened{tok, indent})
		case tENTITY, tIF, tFOR:
			if kind == tFOR && head {
				head = false
			} else if fresh {
				open = append(open, opened{tok, indent})
			}
		case tEND:
			if len(open) == 0 {
				break
			}
			last := open[len(open)-1]
			open = open[:len(open)-1]
			if tok.start.Col == indent && last.indent > indent {
				suspects = append(suspects, last)
			}
		}
	}
	if len(suspects) > 0 && len(open) > 0 {
		open = append(open, suspects[0])
	}
	for _, o := range open {
		blocks = append(blocks, o.token)
	}
	return blocks, brackets
}

// abbreviated is the text of a token, cut to one short line.
func abbreviated(text string) string {
	const most = 30
	first, _, more := strings.Cut(text, "\n")
	if runes := []rune(first); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	if more {
		return first + "…"
	}
	return first
}
