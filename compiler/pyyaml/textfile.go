package pyyaml

import (
	"slices"
	"unicode/utf8"

	"ordain.dev/ordain/internal/python/pytext"
)

// bytesAtOnce is how much Python reads of a text file at a time, at least.
const bytesAtOnce = 8192

// textFile gives the characters of a file as Python does of one that is opened
// as UTF-8 text: in pieces, with `\n` for every end of a line. A byte order mark
// is a character.
type textFile struct {
	left    []byte // not read yet
	begun   []byte // of a character whose other bytes follow
	carried bool   // a `\r` that `\n` may follow
	decoded []rune
	width   float64 // bytes of a character, in what was read last
}

// read gives n characters, fewer only at the end.
func (f *textFile) read(n int) ([]rune, *Error) {
	out := f.take(nil, n)
	for len(out) < n {
		more, err := f.chunk(n - len(out))
		if err != nil {
			return nil, err
		}
		if !more { // what is decoded at the end comes with the next read
			break
		}
		out = f.take(out, n-len(out))
	}
	return out, nil
}

func (f *textFile) take(out []rune, n int) []rune {
	n = min(n, len(f.decoded))
	out = append(out, f.decoded[:n]...)
	f.decoded = f.decoded[n:]
	return out
}

// chunk decodes what may hold so many characters; false at the end.
func (f *textFile) chunk(chars int) (bool, *Error) {
	size := max(bytesAtOnce, int(max(f.width, 1)*float64(chars)))
	read := f.left[:min(size, len(f.left))]
	f.left = f.left[len(read):]
	end := len(read) == 0
	text, err := f.decode(slices.Concat(f.begun, read), end)
	if err != nil {
		return false, err
	}
	f.decoded, f.width = f.lines(text, end), 0
	if len(f.decoded) > 0 {
		f.width = float64(len(read)) / float64(len(f.decoded))
	}
	return !end, nil
}

func (f *textFile) decode(data []byte, end bool) ([]rune, *Error) {
	out := make([]rune, 0, len(data))
	f.begun = nil
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r != utf8.RuneError || size > 1 {
			out = append(out, r)
			at += size
			continue
		}
		size, problem := pytext.Undecodable(data[at:])
		if problem == pytext.UnexpectedEnd && !end {
			f.begun = data[at:]
			break
		}
		return nil, &Error{Class: ClassDecode, Problem: pytext.DecodeErrorAt(data, at, size, problem)}
	}
	return out, nil
}

// lines puts `\n` for other ends of lines.
func (f *textFile) lines(text []rune, end bool) []rune {
	if f.carried && (len(text) > 0 || end) {
		text, f.carried = slices.Insert(text, 0, '\r'), false
	}
	if n := len(text); n > 0 && text[n-1] == '\r' && !end {
		text, f.carried = text[:n-1], true
	}
	out := text[:0]
	for i, r := range text {
		switch {
		case r != '\r':
			out = append(out, r)
		case i+1 == len(text) || text[i+1] != '\n':
			out = append(out, '\n')
		}
	}
	return out
}
