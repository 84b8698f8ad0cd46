package syntax

import (
	"bytes"
	"regexp"
	"runtime"
)

// longText is what takes milliseconds to parse.
const longText = 32 << 10

// parseHalves parses a long file on two processors. It reports false where the
// file has to be parsed as a whole: also to say what is wrong with it.
//
// The text is cut before a line that looks like the begin of a statement. What
// decides is the grammar: a file is a list of statements, so where both parts
// are files, the whole is the file of both. A line within a text, a list or a
// block leaves the first part unfinished.
func parseHalves(file *File, text []byte) bool {
	if len(text) < longText || runtime.GOMAXPROCS(0) == 1 {
		return false
	}
	at := cut(text, len(text)/2)
	return at > 0 && parseParts(file, text, at)
}

// hanging finds a regex that may hang below its `matching`.
var hanging = regexp.MustCompile(`matching\s*\n`)

// parseParts parses the text before and after an offset.
func parseParts(file *File, text []byte, at int) bool {
	if hanging.Match(text[:at]) {
		return false // its lines do not count as they are
	}
	first, second := newParser(file, text[:at:at]), newParser(file, text[at:])
	second.line += int32(bytes.Count(text[:at], []byte{'\n'}))
	done := make(chan bool, 1)
	go func() {
		parsed := false
		defer func() {
			_ = recover() // it fails again where that can be told
			done <- parsed
		}()
		parsed = second.all()
	}()
	whole := first.all()
	if !<-done || !whole {
		return false
	}
	file.Statements, file.Doc = append(first.top, second.top...), first.doc
	file.Warnings = append(append(file.Warnings, first.warnings...), second.warnings...)
	return true
}

// cut looks for a line that begins with a letter, as statements mostly do and as
// the end of a block does not; 0: there is none.
func cut(text []byte, from int) int {
	for {
		next := bytes.IndexByte(text[from:], '\n')
		if next < 0 || from+next+1 == len(text) {
			return 0
		}
		from += next + 1
		switch {
		case bytes.HasPrefix(text[from:], []byte("end")), bytes.HasPrefix(text[from:], []byte("el")): // end, else, elif
		case isLetter(text[from]):
			return from
		}
	}
}
