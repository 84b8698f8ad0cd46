package syntax

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/internal/python/pytext"
)

//go:generate go tool goyacc -l -o grammar.go -v /dev/null grammar.y

// FileInfo names a file to parse.
type FileInfo struct {
	Path      string // as shown to people
	Namespace string // such as __config__ or std::testing
}

// parser is the lexer from which the generated parser reads tokens, and the builder that its
// actions call. An action that returns nil has failed.
type parser struct {
	scanner
	yacc      yyParser
	delivered int // tokens that the generated parser has seen
	top       []Stmt
	doc       string
	refused   *refusal
}

// Parse parses one model file. The error, if any, is an *Error: the first error of the file, which
// has the later ones in Further.
//
// Line ends are made uniform first, as Python does when it reads a text file.
func Parse(info FileInfo, text []byte) (*File, error) {
	file := &File{Path: info.Path, Namespace: info.Namespace}
	if at, ok := invalidUTF8(text); ok {
		line := bytes.Count(text[:at], []byte{'\n'}) + 1
		start := Pos{int32(line), int32(at - bytes.LastIndexByte(text[:at], '\n'))}
		return nil, &Error{
			Kind: KindDecode, Message: pytext.DecodeError(text),
			At: Span{File: file, Start: start, End: start}, Hint: "the file is not valid UTF-8: save it as UTF-8",
		}
	}
	text = uniformLines(text)
	var b strings.Builder
	b.Grow(len(text) + 1)
	b.Write(text)
	file.Lines = strings.Split(b.String(), "\n")
	if n := len(file.Lines); file.Lines[n-1] == "" {
		file.Lines = file.Lines[:n-1]
	}
	b.WriteByte('\n')
	whole := b.String()
	if len(whole) == 1 {
		return file, nil
	}
	if e, w := parse(file, whole); e != nil {
		e.Further = recovered(file, whole, e, w)
		return nil, e
	}
	return file, nil
}

// parse fills in a file, or returns why its text is refused, and where the parser stopped:
// the wreck is nil when that is not known.
func parse(file *File, text string) (*Error, *wreck) {
	p := newParser(file, text)
	whole := p.all()
	file.Warnings = append(file.Warnings, p.warnings...)
	if whole {
		file.Statements, file.Doc = p.top, p.doc
		return nil, nil
	}
	if e, w := judge(text, p.file, p.refused); e != nil {
		return e, w
	}
	if p.refused != nil {
		return p.refused.err, nil
	}
	return p.err, nil
}

func newParser(file *File, text string) *parser {
	return &parser{scanner: *newScanner(file, text), yacc: yyNewParser()}
}

// all parses the whole text. It reports false when the text is refused.
func (p *parser) all() bool { return p.yacc.Parse(p) == 0 && p.err == nil }

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

// Lex returns the generated parser its next token.
func (p *parser) Lex(v *yySymType) int {
	p.delivered++
	return p.next(&v.tok)
}

// Error is called by the generated parser at a syntax error. The judge makes the message.
func (p *parser) Error(string) {}

// refuse records an error that an action found and returns nil, the value of a failed action. left
// is the left side of its production.
func (p *parser) refuse(left string, e *Error) any {
	p.refused = &refusal{err: e, left: left, shifted: p.delivered}
	if p.yacc.Lookahead() >= 0 {
		p.refused.shifted--
	}
	return nil
}
