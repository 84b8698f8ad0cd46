package module

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"unicode/utf8"

	"ordain.dev/ordain/internal/python/pytext"
)

var errNoFile = errors.New("it is no regular file")

// readFile reads a file. Pipes and devices, which may give nothing for ever or
// never end, are refused.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // of folders, reading says what they are
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNoFile}
	}
	return os.ReadFile(path)
}

// readText reads a file that must be UTF-8. What is wrong with it is told as
// upstream's Python does, except that a file is not there: that is the system's
// own error.
func readText(path string) ([]byte, error) {
	text, err := readFile(path)
	if err == nil {
		if why := pytext.DecodeError(text); why != "" {
			err = &Error{
				Kind: KindNoText, Message: why, At: at(path, 1+bytes.Count(validPart(text), []byte{'\n'}), 0),
				Hint: "the file must be UTF-8: save it so, without a byte order mark of another encoding",
			}
		}
	}
	return text, unreadable(path, err)
}

// unreadable tells of a file that cannot be read as upstream's Python does, except
// that it is not there: that is the system's own error.
func unreadable(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if e := systemError(path, err, "it must be a file that can be read, or not be there"); e != nil {
		e.At = at(path, 1, 0)
		return e
	}
	return err
}

// validPart is the text up to the first byte that is not UTF-8.
func validPart(text []byte) []byte {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size <= 1 {
			return text[:i]
		}
		i += size
	}
	return text
}
