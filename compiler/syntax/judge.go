package syntax

import "ordain.dev/ordain/internal/python/pytext"

// refusal is an error that an action of the grammar found.
type refusal struct {
	err *Error
	// left is the left side of the production, shifted the number of tokens shifted
	// before: together they identify the reduction.
	left    string
	shifted int
}

// judge parses a refused text a second time, with the exact tables and without building a tree. It
// returns the error that the reference reports: that of the scanner, a syntax error, or the
// refusal, whichever comes first; nil when it finds none. The wreck says where it stopped.
func judge(text string, file *File, r *refusal) (*Error, *wreck) {
	t := exact()
	s := newScanner(&File{Path: file.Path, Namespace: file.Namespace}, text)
	stack := []int16{0}
	w := &wreck{tables: t, scanner: s, symbols: []symbol{{at: nowhere}}, kind: -1}
	var tok, behind, before token
	behindKind := -1 // of a token on top of the stack
	for shifted := 0; ; {
		state := stack[len(stack)-1]
		action := t.alone[state]
		if action == 0 {
			if w.kind < 0 {
				if w.look(&tok); s.err != nil {
					s.err.At.File = file
					return s.err, w.stopped(stack)
				}
			}
			action = t.action[state][t.kinds[w.kind]]
		}
		switch {
		case action == 0:
			e := syntaxError(s, w.kind, tok, behindKind, behind)
			e.At.File = file
			e.explain(t, stack, s, w.kind, tok, before)
			e.Focus.File = file
			return e, w.stopped(stack)
		case action > 0:
			stack = append(stack, action-1)
			w.shift()
			behind, behindKind, before = tok, w.kind, tok
			w.kind = -1
			shifted++
		case action == -acceptRule-1:
			return nil, nil
		default:
			rule := t.rules[-action-1]
			if r != nil && r.shifted == shifted && r.left == t.names[rule.left] {
				w.refused = r.left
				return r.err, w.stopped(stack)
			}
			stack = stack[:len(stack)-len(rule.right)]
			stack = append(stack, t.jump[stack[len(stack)-1]][rule.left])
			w.reduce(len(rule.right), rule.left)
			behindKind = -1
		}
	}
}

// syntaxError is the reference's error for a token that cannot follow. Its place is that of the
// scanner, the end of the lookahead token, except where a keyword takes the place of a name: then
// it is that of the keyword, which is the lookahead or the token on top of the stack.
func syntaxError(s *scanner, kind int, tok token, behindKind int, behind token) *Error {
	at := s.place(s.pos)
	e := &Error{Kind: KindParser}
	switch {
	case kind == 0:
		at.Col++ // the end of the text counts as one character
		e.Message = "Syntax error: Unexpected end of file"
		e.Hint = "is an `end`, a bracket or a value missing?"
	case keywordKinds[kind] || keywordKinds[behindKind]:
		if !keywordKinds[kind] {
			tok = behind
		}
		e.Message = "Syntax error: invalid identifier, " + tok.text + " is a reserved keyword"
		e.At = s.spanOf(tok.start, tok.end)
		e.Hint = "`" + tok.text + "` is a word of the language and cannot be a name; if it is not meant as one, " +
			"something before it is incomplete"
		return e
	default:
		e.Message = "Syntax error at token " + tokenText(kind, tok)
	}
	e.At = s.spanOf(at, at)
	return e
}

// tokenText is a token as the reference prints it: its value.
func tokenText(kind int, t token) string {
	switch kind {
	case tINT:
		return parseInt(t.text).String()
	case tFLOAT:
		return pytext.Float(parseFloat(t.text))
	case tREGEX:
		return "/" + t.text + "/"
	}
	return t.text
}
