package objects

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	stdhash "hash"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// pack is a file of compressed objects. Some of them are deltas to another object of the
// same pack.
type pack struct {
	*index
	path string // of the pack

	once sync.Once
	data *os.File
	size int64 // without the checksum at the end
	err  error
}

const packHead = 12

// open opens the file of the pack, once.
func (p *pack) open() error {
	p.once.Do(func() { p.err = p.openData() })
	return p.err
}

func (p *pack) openData() error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	var head [packHead]byte
	var tail plumbing.Hash
	p.size = info.Size() - hashSize
	if _, err = f.ReadAt(head[:], 0); err == nil {
		_, err = f.ReadAt(tail[:], max(p.size, 0))
	}
	switch {
	case err != nil:
		err = damaged("%s is cut off: %w", info.Name(), err)
	case string(head[:4]) != "PACK" || int64(binary.BigEndian.Uint32(head[8:])) != p.count() || tail != p.checksum:
		err = damaged("%s does not fit to its index", info.Name())
	}
	if err != nil {
		f.Close()
		return err
	}
	p.data = f
	return nil
}

func (p *pack) close() {
	p.index.close()
	if p.data != nil {
		p.data.Close()
	}
}

// Types of entries besides those of objects.
const (
	offsetDelta    = plumbing.OFSDeltaObject
	referenceDelta = plumbing.REFDeltaObject
)

// entryHead is the header of an entry, before its compressed bytes.
type entryHead struct {
	kind plumbing.ObjectType
	size int64 // of the uncompressed bytes
	base int64 // of an offsetDelta: the offset of its base
	ref  plumbing.Hash
	data int64 // offset of the compressed bytes
}

// errHead means that the header of an entry is malformed.
var errHead = errors.New("an entry of the pack is malformed")

// readHead reads the header of the entry at an offset.
func readHead(in io.ByteReader, offset int64) (entryHead, error) {
	h := entryHead{data: offset}
	next := func() (byte, error) { h.data++; return in.ReadByte() }
	b, err := next()
	if err != nil {
		return h, err
	}
	h.kind, h.size = plumbing.ObjectType(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = next(); err != nil {
			return h, err
		}
		if shift > 53 {
			return h, errHead
		}
		h.size |= int64(b&0x7f) << shift
	}
	switch h.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case offsetDelta:
		back := int64(-1)
		for b = 0x80; b&0x80 != 0; {
			if b, err = next(); err != nil {
				return h, err
			}
			if back++; back > 1<<54 {
				return h, errHead
			}
			back = back<<7 | int64(b&0x7f)
		}
		if h.base = offset - back; back <= 0 || h.base < packHead {
			return h, errHead
		}
	case referenceDelta:
		for i := range h.ref {
			if h.ref[i], err = next(); err != nil {
				return h, err
			}
		}
	default:
		return h, errHead
	}
	return h, nil
}

// maxHead is the largest size of a header.
const maxHead = 10 + hashSize

// head returns the header of the entry at an offset.
func (p *pack) head(offset int64) (entryHead, error) {
	var buf [maxHead]byte
	if offset < packHead || offset >= p.size {
		return entryHead{}, damaged("an index names the offset %d of a pack of %d bytes", offset, p.size)
	}
	n, err := p.data.ReadAt(buf[:min(maxHead, p.size-offset)], offset)
	if err != nil && n == 0 {
		return entryHead{}, err
	}
	h, err := readHead(bytes.NewReader(buf[:n]), offset)
	if err != nil {
		return h, damaged("at %d of %s: %w", offset, p.path, err)
	}
	return h, nil
}

// unzip returns a reader of the uncompressed bytes of an entry.
func (p *pack) unzip(h entryHead) (io.ReadCloser, error) {
	return newUnzip(io.NewSectionReader(p.data, h.data, p.size-h.data))
}

// inflate returns the uncompressed bytes of an entry.
func (p *pack) inflate(h entryHead) ([]byte, error) {
	in, err := p.unzip(h)
	if err != nil {
		return nil, damaged("at %d of %s: %w", h.data, p.path, err)
	}
	defer in.Close()
	content, err := readExactly(in, h.size)
	if err != nil && !errors.Is(err, ErrTooLarge) {
		err = damaged("at %d of %s: %w", h.data, p.path, err)
	}
	return content, err
}

// unzipper decompresses. It is reused, because each has a window of 32 KiB and a
// checkout reads thousands of objects.
type unzipper struct {
	in *bufio.Reader
	z  io.ReadCloser
}

var unzippers = sync.Pool{New: func() any { return &unzipper{in: bufio.NewReaderSize(nil, 4<<10)} }}

func newUnzip(in io.Reader) (io.ReadCloser, error) {
	u := unzippers.Get().(*unzipper)
	u.in.Reset(in)
	var err error
	if u.z == nil {
		u.z, err = zlib.NewReader(u.in)
	} else {
		err = u.z.(zlib.Resetter).Reset(u.in, nil)
	}
	if err != nil {
		return nil, err
	}
	return &unzipping{u}, nil
}

// unzipping is a reader that returns its unzipper to the pool when it is closed.
type unzipping struct{ u *unzipper }

func (r *unzipping) Read(p []byte) (int, error) { return r.u.z.Read(p) }

func (r *unzipping) Close() error {
	if r.u != nil {
		r.u.in.Reset(nil)
		unzippers.Put(r.u)
		r.u = nil
	}
	return nil
}

// MaxInMemory is the largest object, in bytes, that is read into memory. Large files that
// are not stored as deltas are streamed, and may be larger.
const MaxInMemory = 256 << 20

// ErrTooLarge means that an object is larger than MaxInMemory.
var ErrTooLarge = fmt.Errorf("an object is larger than %d MiB", MaxInMemory>>20)

// readExactly reads size bytes, and returns an error if there are more or fewer. Its buffer
// grows with what is read, because the size comes from a stranger.
func readExactly(in io.Reader, size int64) ([]byte, error) {
	if size > MaxInMemory {
		return nil, ErrTooLarge
	}
	content := make([]byte, min(size, 1<<20))
	for n := 0; ; {
		m, err := io.ReadFull(in, content[n:])
		if n += m; err != nil {
			return nil, noEOF(err)
		}
		if int64(n) == size {
			break
		}
		content = append(content, make([]byte, min(size-int64(n), int64(n)))...)
	}
	var more [1]byte
	switch n, err := io.ReadFull(in, more[:]); {
	case n > 0:
		return nil, errors.New("it is longer than its header says")
	case err != io.EOF:
		return nil, err
	}
	return content, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

var errDelta = errors.New("a delta does not fit its base")

// patch applies a delta, which consists of pieces of the base and new bytes.
func patch(base, delta []byte) ([]byte, error) {
	from, n := binary.Uvarint(delta)
	if n <= 0 || from != uint64(len(base)) {
		return nil, errDelta
	}
	delta = delta[n:]
	to, n := binary.Uvarint(delta)
	if n <= 0 {
		return nil, errDelta
	}
	if to > MaxInMemory {
		return nil, ErrTooLarge
	}
	delta = delta[n:]
	out := make([]byte, 0, min(to, uint64(len(base)+len(delta))))
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			if op == 0 || int(op) > len(delta) {
				return nil, errDelta
			}
			out, delta = append(out, delta[:op]...), delta[op:]
			continue
		}
		var arg [7]byte // four of the offset, three of the size
		for i := range arg {
			if op&(1<<i) != 0 {
				if len(delta) == 0 {
					return nil, errDelta
				}
				arg[i], delta = delta[0], delta[1:]
			}
		}
		offset := uint64(arg[0]) | uint64(arg[1])<<8 | uint64(arg[2])<<16 | uint64(arg[3])<<24
		size := uint64(arg[4]) | uint64(arg[5])<<8 | uint64(arg[6])<<16
		if size == 0 {
			size = 0x10000
		}
		if offset+size > uint64(len(base)) || uint64(len(out))+size > to {
			return nil, errDelta
		}
		out = append(out, base[offset:offset+size]...)
	}
	if uint64(len(out)) != to {
		return nil, errDelta
	}
	return out, nil
}

// deltaSize returns the size of the object that a delta makes, from the first bytes of the delta.
func deltaSize(delta []byte) (int64, error) {
	_, n := binary.Uvarint(delta)
	if n <= 0 {
		return 0, errDelta
	}
	size, n := binary.Uvarint(delta[n:])
	if n <= 0 || size > 1<<60 {
		return 0, errDelta
	}
	return int64(size), nil
}

// newSum returns Git's hash: SHA-1 with detection of the known collision attacks.
func newSum() stdhash.Hash { return hash.New(crypto.SHA1) }

// prefix returns what is hashed before the content of an object.
func prefix(kind plumbing.ObjectType, size int64) string {
	return kind.String() + " " + strconv.FormatInt(size, 10) + "\x00"
}

// nameOf computes the name of an object with sum, which it resets first.
func nameOf(sum stdhash.Hash, kind plumbing.ObjectType, content []byte) (h plumbing.Hash) {
	sum.Reset()
	io.WriteString(sum, prefix(kind, int64(len(content)))) // writing to a hash never fails
	sum.Write(content)
	sum.Sum(h[:0])
	return h
}

// packName returns the path of a pack from that of its index.
func packName(index string) string { return strings.TrimSuffix(index, ".idx") + ".pack" }
