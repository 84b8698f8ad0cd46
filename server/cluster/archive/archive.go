// Package archive checks and unpacks the archives that people upload as resources of plug-ins: tar, tar.gz and zip.
// The bytes are not to be trusted. The server checks an archive when it is uploaded; a provisioner checks it again
// while it unpacks it.
//
//	bytes ──▶ walk: one entry at a time, by format ──▶ rules: names, kinds, number, size ──▶ Check: nothing more
//	                                                                                    └──▶ Unpack: a folder
//
// Everything lies in one top folder that has the name of the resource. There are files, folders, and symbolic links
// that stay within the top folder; nothing else. No path appears twice, and nothing is written through a link: links
// are made after all files, and files through an os.Root.
package archive

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// Limits of one archive.
const (
	MaxEntries  = 20_000
	MaxUnpacked = 1 << 30 // bytes of all files together
	MaxPacked   = 512 << 20
	maxPath     = 1024 // bytes of the path of an entry, and of the target of a link
	maxPart     = 255  // bytes of one part of a path
)

// Limits bounds an archive. The zero value stands for the constants of this package.
type Limits struct {
	Entries  int
	Unpacked int64
	Packed   int64
}

func (l Limits) orDefault() Limits {
	if l.Entries == 0 {
		l.Entries = MaxEntries
	}
	if l.Unpacked == 0 {
		l.Unpacked = MaxUnpacked
	}
	if l.Packed == 0 {
		l.Packed = MaxPacked
	}
	return l
}

// Check reads an archive to its end, and reports what is wrong with it as the archive of a resource with this name.
// The errors are faults for the person who made the archive.
func Check(r io.Reader, name string) error { return Limits{}.Check(r, name) }

// Unpack unpacks an archive into dir, where it makes the folder with the name. After an error, what is there already
// stays; the caller removes it.
func Unpack(r io.Reader, name, dir string) error { return Limits{}.Unpack(r, name, dir) }

// Check is Check with these limits.
func (l Limits) Check(r io.Reader, name string) error {
	rules, err := newRules(l.orDefault(), name)
	if err != nil {
		return err
	}
	return walk(r, rules, func(entry, io.Reader) error { return nil })
}

// Unpack is Unpack with these limits.
func (l Limits) Unpack(r io.Reader, name, dir string) error {
	rules, err := newRules(l.orDefault(), name)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault.Disk("archive.Unpack", dir, err)
	}
	defer root.Close()
	if err := root.Mkdir(name, 0o755); err != nil {
		return fault.Disk("archive.Unpack", filepath.Join(dir, name), err)
	}
	var links []entry
	err = walk(r, rules, func(e entry, content io.Reader) error {
		switch e.kind {
		case folder:
			return disk(dir, e, root.MkdirAll(e.path, 0o755))
		case link:
			links = append(links, e)
			return nil
		}
		if err := root.MkdirAll(filepath.Dir(e.path), 0o755); err != nil {
			return disk(dir, e, err)
		}
		return write(root, dir, e, content)
	})
	if err != nil {
		return err
	}
	for _, e := range links {
		if err := root.MkdirAll(filepath.Dir(e.path), 0o755); err != nil {
			return disk(dir, e, err)
		}
		if err := root.Symlink(e.target, e.path); err != nil {
			return disk(dir, e, err)
		}
	}
	return nil
}

// write writes a file. The content is bounded by the rules.
func write(root *os.Root, dir string, e entry, content io.Reader) error {
	mode := os.FileMode(0o644)
	if e.program {
		mode = 0o755
	}
	f, err := root.OpenFile(e.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return disk(dir, e, err)
	}
	source := &source{r: content}
	_, err = io.Copy(f, source)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if source.err != nil { // the archive is at fault, and not the disk
		return source.err
	}
	return disk(dir, e, err)
}

// source remembers an error of the reader, to tell it from one of the writer.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func disk(dir string, e entry, err error) error {
	if err == nil {
		return nil
	}
	return fault.Disk("archive.Unpack", filepath.Join(dir, e.path), err)
}

// invalid is a fault of the archive.
func invalid(format string, args ...any) *fault.Error {
	return fault.New("archive.Check", fault.Invalid, fmt.Sprintf(format, args...))
}

// shown is a name of the archive as it may appear in a message.
func shown(name string) string {
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(name, "?"))
}
