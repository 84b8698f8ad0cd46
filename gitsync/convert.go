package gitsync

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// conversion is what git does to the content of a file when it writes it to the disk,
// on a machine whose lines end with a line feed and that has no configuration.
type conversion struct {
	crlf     bool   // lines end with CR and LF
	guess    bool   // only if the content looks like text
	ident    bool   // $Id$ becomes the name of the object
	encoding string // other than UTF-8; empty for none
}

// String is empty when the content is written as it is.
func (c conversion) String() string {
	if c == (conversion{}) {
		return ""
	}
	return fmt.Sprintf("crlf=%v guess=%v ident=%v encoding=%q", c.crlf, c.guess, c.ident, c.encoding)
}

// conversionOf returns the conversion that attributes ask for, and what of it cannot be done.
func conversionOf(values map[string]string) (c conversion, why string) {
	c.ident = values["ident"] == attributeSet
	name, is := strings.CutPrefix(values["working-tree-encoding"], "=")
	switch {
	case !is || name == "" || sameEncoding(name, "UTF-8"):
		if state := values["working-tree-encoding"]; state == attributeSet || state == attributeUnset {
			why = "working-tree-encoding (it has no value)"
		}
	case encodingOf(name) == nil:
		why = "working-tree-encoding=" + printable(name) + " (this encoding is not known)"
	default:
		c.encoding = name
	}
	// Whether the content is text: "text", or "crlf", as that was called before.
	text := textState(values["text"])
	if text == "" {
		text = textState(values["crlf"])
	}
	if values["eol"] == "=crlf" {
		switch text {
		case "set", "input", "":
			c.crlf = true
		case "auto":
			c.crlf, c.guess = true, true
		}
	}
	return c, why
}

// textState returns set, unset, auto or input; empty when the attribute says nothing.
func textState(state string) string {
	switch state {
	case attributeSet, attributeUnset:
		return state
	case "=auto", "=input":
		return state[1:]
	}
	return ""
}

// sameEncoding compares names of encodings; UTF8 is UTF-8.
func sameEncoding(a, b string) bool { return utfName(a) == utfName(b) }

func utfName(name string) string {
	name = strings.ToUpper(name)
	if rest, is := strings.CutPrefix(name, "UTF"); is {
		return "UTF-" + strings.TrimPrefix(rest, "-")
	}
	return name
}

// encodingOf returns an encoding by its name; nil when it is not known.
func encodingOf(name string) encoding.Encoding {
	switch utfName(name) {
	case "UTF-16", "UTF-16LE-BOM":
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case "UTF-16BE-BOM":
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case "UTF-16LE":
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case "UTF-16BE":
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case "UTF-32":
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	case "UTF-32LE":
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	case "UTF-32BE":
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	}
	if e, err := ianaindex.IANA.Encoding(name); err == nil && e != nil {
		return e
	}
	if e, err := htmlindex.Get(name); err == nil { // it knows cp1252, for example
		return e
	}
	return nil
}

// unfit says why the content of a file is not in its encoding.
func (c conversion) unfit() string {
	return "working-tree-encoding=" + printable(c.encoding) + " (the content does not fit; it is in UTF-8)"
}

// apply converts the content of a file, in the order of git. It returns false when the
// content cannot be encoded as it should be, and leaves it in UTF-8 then, like git.
func (c conversion) apply(text []byte, hash string) (out []byte, fits bool) {
	if c.ident {
		text = expandIdent(text, hash)
	}
	if c.crlf && (!c.guess || looksLikeText(text)) {
		text = toCRLF(text)
	}
	if c.encoding == "" || len(text) == 0 {
		return text, true
	}
	if !utf8.Valid(text) {
		return text, false
	}
	encoded, err := encodingOf(c.encoding).NewEncoder().Bytes(text)
	if err != nil {
		return text, false
	}
	return encoded, true
}

// expandIdent replaces $Id$, and $Id: …$ from an earlier expansion.
func expandIdent(text []byte, hash string) []byte {
	const keyword = "Id"
	if !bytes.Contains(text, []byte("$"+keyword)) {
		return text
	}
	var out bytes.Buffer
	for {
		at := bytes.IndexByte(text, '$')
		if at < 0 {
			break
		}
		out.Write(text[:at+1])
		text = text[at+1:]
		if len(text) < 3 || string(text[:2]) != keyword {
			continue
		}
		end := 2
		switch text[2] {
		case '$':
		case ':':
			length := bytes.IndexByte(text[3:], '$')
			if length < 0 {
				out.Write(text)
				return out.Bytes()
			}
			end = 3 + length
			inside := text[3:end]
			if bytes.IndexByte(inside, '\n') >= 0 {
				continue
			}
			// A space before the last place means that another system wrote it.
			if end > 4 {
				if space := bytes.IndexByte(text[4:end], ' '); space >= 0 && 4+space < end-1 {
					continue
				}
			}
		default:
			continue
		}
		out.WriteString(keyword + ": " + hash + " $")
		text = text[end+1:]
	}
	out.Write(text)
	return out.Bytes()
}

// looksLikeText reports whether text=auto takes a content for text whose line breaks
// are to be converted: it has no CR, and little that cannot be printed.
func looksLikeText(text []byte) bool {
	printable, not := 0, 0
	for _, c := range text {
		switch {
		case c == '\r', c == 0:
			return false
		case c == '\n':
		case c == 127, c < 32 && c != '\b' && c != '\t' && c != '\f' && c != 27:
			not++
		default:
			printable++
		}
	}
	if len(text) > 0 && text[len(text)-1] == 26 { // the end of file of DOS
		not--
	}
	return printable>>7 >= not
}

// toCRLF puts a CR before each LF that has none.
func toCRLF(text []byte) []byte {
	lonely := bytes.Count(text, []byte("\n")) - bytes.Count(text, []byte("\r\n"))
	if lonely == 0 {
		return text
	}
	out := make([]byte, 0, len(text)+lonely)
	for i, c := range text {
		if c == '\n' && (i == 0 || text[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return out
}
