package syntax

import (
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// longText is what takes milliseconds to parse.
	longText = 32 << 10
	// shortPiece is the least that is worth a parser of its own.
	shortPiece = 8 << 10
	mostPieces = 16
)

// parsePieces parses a long file on two processors. It reports false where the
// file has to be parsed as a whole: also to say what is wrong with it.
//
// The text is cut before lines that look like the begin of a statement. What
// decides is the grammar: a file is a list of statements, so where all pieces
// are files, the whole is the file of all. A line within a text, a list or a
// block leaves the piece before unfinished.
//
// The pieces are more than two, since one processor may have other files to read.
func parsePieces(file *File, text string) bool {
	if len(text) < longText || runtime.GOMAXPROCS(0) == 1 {
		return false
	}
	var cuts []int
	for n, k := min(mostPieces, len(text)/shortPiece), 1; k < n; k++ {
		if at := cut(text, k*len(text)/n); at > 0 && (cuts == nil || at > cuts[len(cuts)-1]) {
			cuts = append(cuts, at)
		}
	}
	return cuts != nil && parseCut(file, text, cuts)
}

// hanging finds a regex that may hang below its `matching`.
var hanging = regexp.MustCompile(`matching\s*\n`)

// parseCut parses a text that is cut before each of some offsets.
func parseCut(file *File, text string, cuts []int) bool {
	if hanging.MatchString(text[:cuts[len(cuts)-1]]) {
		return false // its lines do not count as they are
	}
	for _, at := range cuts {
		if strings.HasPrefix(text[at:], "not") { // behind an expression it is the begin of `not in`
			return false
		}
	}
	pieces, from, lines := make([]*parser, 0, len(cuts)+1), 0, int32(0)
	for _, to := range append(cuts, len(text)) {
		p := newParser(file, text[from:to])
		p.line += lines
		pieces = append(pieces, p)
		lines, from = lines+int32(strings.Count(text[from:to], "\n")), to
	}
	var next, parsed atomic.Int32
	work := func() {
		defer func() { _ = recover() }() // it fails again where that can be told
		for {
			n := int(next.Add(1)) - 1
			if n >= len(pieces) || !pieces[n].all() {
				return
			}
			parsed.Add(1)
		}
	}
	var other sync.WaitGroup
	other.Go(work)
	work()
	other.Wait()
	if int(parsed.Load()) < len(pieces) {
		return false
	}
	file.Doc = pieces[0].doc
	for _, p := range pieces {
		file.Statements, file.Warnings = append(file.Statements, p.top...), append(file.Warnings, p.warnings...)
	}
	return true
}

// cut looks for a line that begins with a letter, as statements mostly do and as
// the end of a block does not; 0: there is none.
func cut(text string, from int) int {
	for {
		next := strings.IndexByte(text[from:], '\n')
		if next < 0 || from+next+1 == len(text) {
			return 0
		}
		from += next + 1
		switch {
		case strings.HasPrefix(text[from:], "end"), strings.HasPrefix(text[from:], "el"): // end, else, elif
		case isLetter(text[from]):
			return from
		}
	}
}
