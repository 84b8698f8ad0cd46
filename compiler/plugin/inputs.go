package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/filestamp"
)

// granule is how long a file may change without its times telling: what was
// looked at sooner after its last change is read again.
const granule = 2 * time.Second

// input is a file or folder that a load read.
//
// Its stamp says that it is the same as long as nothing was written. When the
// stamp differs, as after a fresh checkout, the content decides.
type input struct {
	Path  string
	Stamp filestamp.Stamp
	Hash  string // of a file's content, or of the names in a folder
	Fresh bool   // the stamp was too young to be believed
}

// look notes what an input is now. It fails when it changed since a time: then
// nobody knows what was read.
func look(path string, folder bool, since time.Time) (input, error) {
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

// same reports whether an input still is what it was. It renews a stamp that
// differs although the content does not; renewed tells that.
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
	f, err := os.Open(path)
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
			if name != "__pycache__" { // comes and goes as Python likes
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

// packagesIn describes what is installed in a folder of packages: their names
// with their versions, and where links lead.
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
