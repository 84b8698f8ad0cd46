package syntax

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

//go:generate go tool goyacc -l -o grammar.go -v /dev/null grammar.y

// FileInfo names a file to parse.
type FileInfo struct {
	Path      string // as it is shown
	Namespace string // such as __config__ or std::testing
}

// parser is the lexer that the generated parser pulls tokens from, and the
// builder that its actions call. An action that returns nil has failed.
type parser struct {
	scanner
	top []Stmt
	doc string
	// ahead is the token that the parser looks at, behind the one before it.
	ahead, behind         token
	aheadKind, behindKind int
}

// Parse reads one model file. The error, if any, is an *Error.
//
// Line ends are made uniform first, as Python does when it reads a text file.
func Parse(info FileInfo, text []byte) (*File, error) {
	file := &File{Path: info.Path, Namespace: info.Namespace}
	if at, ok := invalidUTF8(text); ok {
		line := bytes.Count(text[:at], []byte{'\n'}) + 1
		start := Pos{int32(line), int32(at - bytes.LastIndexByte(text[:at], '\n'))}
		return nil, &Error{
			Kind: KindDecode, Message: "the file is not valid UTF-8",
			At: Span{File: file, Start: start, End: start}, Hint: "save the file as UTF-8",
		}
	}
	text = uniformLines(text)
	file.Lines = strings.Split(string(text), "\n")
	if n := len(file.Lines); file.Lines[n-1] == "" {
		file.Lines = file.Lines[:n-1]
	}
	if len(text) == 0 {
		return file, nil
	}
	p := &parser{scanner: *newScanner(file, append(text[:len(text):len(text)], '\n'))}
	if yyNewParser().Parse(p) != 0 || p.err != nil {
		return nil, p.err
	}
	file.Statements, file.Doc = p.top, p.doc
	return file, nil
}

func invalidUTF8(text []byte) (int, bool) {
	if utf8.Valid(text) {
		return 0, false
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i, true
		}
		i += n
	}
	return 0, false
}

func uniformLines(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
}

// on finds the builder in an action of the grammar.
func on(l yyLexer) *parser { return l.(*parser) }

// Lex gives the generated parser its next token.
func (p *parser) Lex(v *yySymType) int {
	p.behind, p.behindKind = p.ahead, p.aheadKind
	p.aheadKind = p.next(&v.tok)
	p.ahead = v.tok
	return p.aheadKind
}

// Error is called by the generated parser where no production goes on. The
// place is that of the scanner, the end of the token looked at, except for a
// keyword in place of a name.
func (p *parser) Error(string) {
	at := p.place(p.pos)
	switch {
	case p.aheadKind == 0:
		at.Col++ // the reference counts the end of the text as one character
		p.fail(&Error{Kind: KindParser, Message: "Syntax error: Unexpected end of file", At: p.spanOf(at, at), Hint: "is an `end`, a bracket or a value missing?"})
	case keywordKinds[p.aheadKind]:
		p.reserved(p.ahead)
	case keywordKinds[p.behindKind]:
		p.reserved(p.behind)
	default:
		p.fail(&Error{Kind: KindParser, Message: "Syntax error at token " + tokenText(p.aheadKind, p.ahead), At: p.spanOf(at, at)})
	}
}

func (p *parser) reserved(t token) {
	p.fail(&Error{
		Kind: KindParser, Message: "Syntax error: invalid identifier, " + t.text + " is a reserved keyword",
		At: p.spanOf(t.start, t.end),
	})
}

// tokenText is a token as the reference prints it: by its value.
func tokenText(kind int, t token) string {
	switch kind {
	case tINT:
		return parseInt(t.text).String()
	case tFLOAT:
		return pyFloat(parseFloat(t.text))
	case tREGEX:
		return "/" + t.text + "/"
	}
	return t.text
}
