package gitsync

import (
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// put stores one object. go-git could do it, but keeps a file open, and its
// room taken, when the disk is full.
func (m *mirror) put(o plumbing.EncodedObject) error {
	name := o.Hash().String()
	path := filepath.Join(m.objects(), name[:2], name[2:])
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	in, err := o.Reader()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Join(m.objects(), "pack"), "tmp_obj_*")
	if err != nil {
		return err
	}
	packed, err := zlib.NewWriterLevel(out, zlib.BestSpeed)
	if err == nil {
		_, err = io.WriteString(packed, o.Type().String()+" "+strconv.FormatInt(o.Size(), 10)+"\x00")
	}
	hash := plumbing.NewHasher(o.Type(), o.Size())
	if err == nil {
		_, err = io.Copy(io.MultiWriter(packed, hash), in)
	}
	if err == nil {
		err = packed.Close()
	}
	if err == nil && hash.Sum() != o.Hash() {
		err = fmt.Errorf("object %s has another content: %w", short(name), zlib.ErrChecksum)
	}
	if err == nil {
		err = out.Chmod(0o444)
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		os.Remove(out.Name())
	}
	return err
}

// sweep removes what interrupted fetches left; the mirror is locked.
func (m *mirror) sweep() {
	left, _ := filepath.Glob(filepath.Join(m.objects(), "pack", "tmp_*"))
	for _, path := range left {
		os.Remove(path)
	}
}
