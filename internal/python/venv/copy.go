package venv

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// copyTree copies folders, files and symbolic links, and nothing else. The copies belong
// to this program, nothing has them open, and no other name leads to them: so whatever
// built the original can no longer change them. No link leads the copying out of from,
// and only those in bin, as to the interpreter, lead out of the copy.
func copyTree(from, to string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, path)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			leads, err := root.Readlink(path)
			if err != nil {
				return err
			}
			inside := !filepath.IsAbs(leads) && filepath.IsLocal(filepath.Join(filepath.Dir(path), leads))
			if !inside && filepath.Dir(path) != "bin" {
				return nil
			}
			return os.Symlink(leads, target)
		case d.Type().IsRegular():
			return copyFile(root, path, target)
		}
		return nil
	})
}

func copyFile(root *os.Root, from, to string) error {
	in, err := root.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
