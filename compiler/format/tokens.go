package format

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

// token is a token with the comments around it.
type token struct {
	kind   syntax.LexemeKind
	text   string
	before []comment // on lines of their own
	after  string    // comment on the same line, empty when there is none
	// lines counts the line ends since the last token or comment.
	lines int
	col   int // blanks before it on its line
	eof   bool
}

// comment is a comment on a line of its own.
type comment struct {
	text  string
	lines int // line ends since the last token or comment
	col   int // blanks before it
}

// tokenize attaches comments to tokens. The last token is the end of the file.
func tokenize(text []byte, lexemes []syntax.Lexeme) []token {
	tokens := make([]token, 0, len(lexemes)+1)
	end := 0
	for _, l := range lexemes {
		t := token{kind: l.Kind, text: string(text[l.Start:l.End])}
		if l.Kind == syntax.Matching {
			word, pattern, _ := strings.Cut(t.text, "/")
			t.text = strings.TrimSpace(word) + " /" + pattern
		}
		tokens = gap(tokens, t, string(text[end:l.Start]))
		end = l.End
	}
	return gap(tokens, token{eof: true}, string(text[end:]))
}

// gap reads the text between two tokens and appends the second.
func gap(tokens []token, t token, between string) []token {
	col := 0
	for between != "" {
		switch c := between[0]; c {
		case '\n':
			t.lines++
			col = 0
		case '#':
			text, rest, _ := strings.Cut(between, "\n")
			text = strings.TrimRight(text, " \t")
			if len(tokens) > 0 && t.lines == 0 && len(t.before) == 0 {
				tokens[len(tokens)-1].after = text
			} else {
				t.before = append(t.before, comment{text, t.lines, col})
			}
			between, t.lines, col = rest, 1, 0
			continue
		default:
			col++
		}
		between = between[1:]
	}
	t.col = col
	return append(tokens, t)
}

// breaks reports whether the token begins a line.
func (t *token) breaks() bool { return t.lines > 0 || len(t.before) > 0 }

func (t *token) is(text string) bool {
	return !t.eof && t.text == text && (t.kind == syntax.Punctuation || t.kind == syntax.Keyword)
}
