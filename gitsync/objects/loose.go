package objects

import (
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

func (s *Store) loosePath(h plumbing.Hash) string {
	name := h.String()
	return filepath.Join(s.dir, name[:2], name[2:])
}

// looseHead reads the type and the size of an object, which come before its content.
func looseHead(f *os.File) (kind plumbing.ObjectType, size int64, in io.ReadCloser, err error) {
	if in, err = newUnzip(f); err != nil {
		return 0, 0, nil, damaged("%s: %w", f.Name(), noEOF(err))
	}
	var head [32]byte
	for n := range head {
		if _, err = io.ReadFull(in, head[n:n+1]); err != nil {
			break
		}
		if head[n] != 0 {
			continue
		}
		word, digits, _ := strings.Cut(string(head[:n]), " ")
		if kind, err = plumbing.ParseObjectType(word); err == nil {
			size, err = strconv.ParseInt(digits, 10, 64)
		}
		if err != nil || size < 0 || kind > plumbing.TagObject {
			break
		}
		return kind, size, in, nil
	}
	in.Close()
	if err != nil {
		return 0, 0, nil, damaged("%s: %w", f.Name(), noEOF(err))
	}
	return 0, 0, nil, damaged("%s is not an object", f.Name())
}

// loose reads a loose object from its open file, and closes the file.
func (s *Store) loose(f *os.File, h plumbing.Hash) (*stored, error) {
	defer f.Close()
	kind, size, in, err := looseHead(f)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if kind == plumbing.BlobObject && size > maxWhole {
		return &stored{
			kind: kind,
			hash: h,
			size: size,
			open: func() (io.ReadCloser, error) { return s.openLoose(h) },
		}, nil
	}
	content, err := readExactly(in, size)
	if errors.Is(err, ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, damaged("%s: %w", f.Name(), err)
	}
	if nameOf(newSum(), kind, content) != h {
		return nil, damaged("object %s has another content", h)
	}
	return &stored{kind: kind, hash: h, size: size, content: content}, nil
}

// looseReader reads the content of a loose object, and closes its file.
type looseReader struct {
	io.ReadCloser
	file *os.File
}

func (r looseReader) Close() error { return errors.Join(r.ReadCloser.Close(), r.file.Close()) }

// openLoose opens the content of a large loose object.
func (s *Store) openLoose(h plumbing.Hash) (io.ReadCloser, error) {
	f, err := os.Open(s.loosePath(h))
	if errors.Is(err, fs.ErrNotExist) { // it has been compacted
		if _, err := s.list(); err != nil {
			return nil, err
		}
		p, offset, err := s.find(h)
		if err != nil {
			return nil, err
		}
		head, err := p.head(offset)
		if err != nil {
			return nil, err
		}
		return p.unzip(head)
	}
	if err != nil {
		return nil, err
	}
	_, _, in, err := looseHead(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return looseReader{in, f}, nil
}

// looseWithByte lists the loose objects whose hash begins with a byte.
func (s *Store) looseWithByte(b byte) ([]plumbing.Hash, error) {
	fan := hex.EncodeToString([]byte{b})
	entries, err := os.ReadDir(filepath.Join(s.dir, fan))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []plumbing.Hash
	for _, e := range entries {
		if name := fan + e.Name(); plumbing.IsHash(name) {
			all = append(all, plumbing.NewHash(name))
		}
	}
	return all, nil
}

// looseNames lists all loose objects.
func (s *Store) looseNames() ([]plumbing.Hash, error) {
	var all []plumbing.Hash
	for b := range 256 {
		some, err := s.looseWithByte(byte(b))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Put stores one object in a loose file.
func (s *Store) Put(o plumbing.EncodedObject) error {
	path := s.loosePath(o.Hash())
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.packDir(), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	in, err := o.Reader()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(s.packDir(), "tmp_obj_*")
	if err != nil {
		return err
	}
	packed, err := zlib.NewWriterLevel(out, zlib.BestSpeed)
	if err == nil {
		_, err = io.WriteString(packed, prefix(o.Type(), o.Size()))
	}
	hash := plumbing.NewHasher(o.Type(), o.Size())
	if err == nil {
		_, err = io.Copy(io.MultiWriter(packed, hash), in)
	}
	if err == nil {
		err = packed.Close()
	}
	if err == nil && hash.Sum() != o.Hash() {
		err = fmt.Errorf("object %s has another content: %w", o.Hash(), zlib.ErrChecksum)
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

// Sweep removes the temporary files of writers that were killed. Nobody may be writing.
func (s *Store) Sweep() {
	left, _ := filepath.Glob(filepath.Join(s.packDir(), "tmp_*")) // the pattern is valid
	for _, path := range left {
		os.Remove(path)
	}
}
