package module

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"unicode/utf8"

	"ordain.dev/ordain/internal/python/pytext"
)

var errNoFile = errors.New("it is not a regular file")

// readFile reads a file. It refuses pipes and devices, which may block for ever or
// never end.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // reading a folder fails with an error of its own
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNoFile}
	}
	return os.ReadFile(path)
}

// readText reads a file that must be UTF-8. A missing file is an error that wraps
// fs.ErrNotExist; all other errors are of the classes that Python has for them.
func readText(path string) ([]byte, error) {
	text, err := readFile(path)
	if err == nil {
		if why := pytext.DecodeError(text); why != "" {
			err = &Error{
				Kind: KindNoText, Message: why, At: at(path, 1+bytes.Count(validPart(text), []byte{'\n'}), 0),
				Hint: "save the file as UTF-8, without a byte order mark of another encoding",
			}
		}
	}
	return text, unreadable(path, err)
}

// unreadable turns an error from reading a file into an *Error, unless the file is
// missing.
func unreadable(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if e := systemError(path, err, "it must be a readable file, or be absent"); e != nil {
		e.At = at(path, 1, 0)
		return e
	}
	return err
}

// validPart returns the text up to the first byte that is not UTF-8.
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
