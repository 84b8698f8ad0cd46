package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/filestamp"
)

// granule is how long a file may change without a new time of change. An input whose stamp is
// younger than that is compared by content.
const granule = 2 * time.Second

// input is a file or folder that a load read.
//
// An equal stamp means that it is unchanged. When the stamp differs, as after a fresh checkout, the
// content decides.
type input struct {
	Path  string
	Stamp filestamp.Stamp
	Hash  string // of a file's content, or of the names in a folder
	Fresh bool   // the stamp is too young to be relied on
}

// newInput records the present state of an input. It fails when the input has changed since a time,
// because then nobody knows which content was read.
func newInput(path string, folder bool, since time.Time) (input, error) {
	now := time.Now()
	s, err := filestamp.Of(path)
	if err != nil {
		return input{}, err
	}
	i := input{Path: path, Stamp: s, Fresh: now.Sub(s.Changed()) < granule}
	if !folder && s != (filestamp.Stamp{}) && !s.Changed().Before(since) {
		return input{}, errors.New("changed while it was read: " + path)
	}
	i.Hash, err = content(path, s, folder)
	return i, err
}

// same reports whether an input is unchanged, and whether it renewed the stamp, which it does when
// that differs but the content does not.
func (i *input) same(folder bool) (same, renewed bool) {
	now := time.Now()
	s, err := filestamp.Of(i.Path)
	if err != nil {
		return false, false
	}
	if s == i.Stamp && !i.Fresh {
		return true, false
	}
	hash, err := content(i.Path, s, folder)
	if err != nil || hash != i.Hash {
		return false, false
	}
	fresh := now.Sub(s.Changed()) < granule
	renewed = s != i.Stamp || fresh != i.Fresh
	i.Stamp, i.Fresh = s, fresh
	return true, renewed
}

// content hashes a file, or the names in a folder.
func content(path string, s filestamp.Stamp, folder bool) (string, error) {
	if s == (filestamp.Stamp{}) {
		return "", nil
	}
	sum := sha256.New()
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not make us wait
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	switch {
	case info.IsDir():
		names, err := f.Readdirnames(-1)
		if err != nil {
			return "", err
		}
		slices.Sort(names)
		for _, name := range names {
			if name != "__pycache__" { // Python may make and remove it
				_, _ = io.WriteString(sum, name+"\x00")
			}
		}
	case folder: // an archive on sys.path
		return "", errors.New("not a folder: " + path)
	case !info.Mode().IsRegular():
		return "", errors.New("not a file: " + path)
	default:
		if _, err := io.Copy(sum, f); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// packagesIn describes what is installed in a folder of packages: names with versions, and the
// targets of links.
func packagesIn(dir string) (string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		if name == "__pycache__" {
			continue
		}
		b.WriteString(name + "\x00")
		if strings.HasSuffix(name, ".pth") || strings.HasSuffix(name, ".egg-link") {
			text, err := os.ReadFile(dir + "/" + name)
			if err != nil {
				return "", err
			}
			b.Write(text)
		}
	}
	return b.String(), nil
}
