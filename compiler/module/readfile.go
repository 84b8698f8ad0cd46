package module

import (
	"errors"
	"io/fs"
	"os"
	"unicode/utf8"
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

// readText reads a file that must be UTF-8. What else is wrong with it is told as
// upstream's Python does, beside the system's own errors.
func readText(path string) ([]byte, error) {
	text, err := readFile(path)
	if err == nil && !utf8.Valid(text) {
		err = &Error{Kind: KindNoText, Message: path + " is no text: it must be UTF-8", At: at(path, 1, 0), Hint: "save it as UTF-8, without a byte order mark of another encoding"}
	}
	return text, orDirectory(path, err)
}

// orDirectory tells of a folder that stands where a file should.
func orDirectory(path string, err error) error {
	if err != nil && isDir(path) {
		return &Error{Kind: KindDirectory, Like: KindInvalid, Message: path + " is a directory", At: at(path, 1, 0), Hint: "it must be a file, or not be there"}
	}
	return err
}
