package module

import (
	"errors"
	"io/fs"
	"os"
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
