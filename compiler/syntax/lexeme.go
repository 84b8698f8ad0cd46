package syntax

// LexemeKind is the kind of a lexeme.
type LexemeKind uint8

// Kinds of lexemes.
const (
	Punctuation LexemeKind = iota // operators and brackets
	Keyword
	LowerName
	UpperName
	Constant  // numbers and strings of one line
	MultiLine // """text"""
	Matching  // all of matching /regex/
)

// Lexeme is a token as it is written: text[Start:End]. Between lexemes there are blanks, line ends
// and comments.
type Lexeme struct {
	Kind       LexemeKind
	Start, End int
}

// Lexemes splits a text that Parse accepts into its tokens, for tools that need what the tree does
// not keep: comments, and how constants are written. It also returns the text to which the offsets
// refer, which has uniform line ends and one at the end.
func Lexemes(text []byte) ([]byte, []Lexeme, error) {
	text = uniformLines(text)
	if n := len(text); n == 0 || text[n-1] != '\n' {
		text = append(text[:n:n], '\n')
	}
	s := newScanner(&File{}, string(text))
	var all []Lexeme
	for {
		s.skip()
		start := s.pos
		var t token
		kind := s.next(&t)
		if s.err != nil {
			return nil, nil, s.err
		}
		if kind == 0 {
			return text, all, nil
		}
		all = append(all, Lexeme{lexemeKind(kind), start, s.pos})
	}
}

func lexemeKind(token int) LexemeKind {
	switch token {
	case tID:
		return LowerName
	case tCID:
		return UpperName
	case tINT, tFLOAT, tSTRING, tRSTRING, tFSTRING:
		return Constant
	case tMLS:
		return MultiLine
	case tREGEX:
		return Matching
	}
	if keywordKinds[token] {
		return Keyword
	}
	return Punctuation
}
