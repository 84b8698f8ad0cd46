package objects

import (
	"bufio"
	"compress/flate"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
)

// Receive stores a pack that is read from a remote. It unpacks every object and computes
// its name. Readers find the objects only when all of them are stored, because the index
// is written last.
func (s *Store) Receive(in io.Reader) error {
	out, err := s.newPack()
	if err != nil {
		return err
	}
	defer out.discard()
	a := &arrival{file: out.file, sum: newSum()}
	if err = a.take(in); err == nil {
		err = a.resolve()
	}
	if err != nil {
		return ofPack(err)
	}
	all := make([]written, len(a.entries))
	for i := range a.entries {
		all[i] = a.entries[i].written
	}
	a.entries = nil
	return out.keep(all, a.checksum)
}

// arrival is a pack that is being received. It needs 48 bytes of memory for each entry, and
// 8 more for each delta.
type arrival struct {
	file     *os.File
	sum      hash.Hash                 // for names of objects
	entries  []arrived                 // by offset
	deltas   []delta                   // those that name their base by its offset; resolve sorts them by base and entry
	refs     map[plumbing.Hash][]int32 // entries of deltas that name their base by its hash
	checksum plumbing.Hash
	size     int64
}

type arrived struct {
	written
	kind     plumbing.ObjectType // of the entry, and once a delta is resolved, of its object
	resolved bool                // it is a delta whose object has its name
}

type delta struct{ base, entry int32 }

// ErrMalformed means that what was received is not a pack that can be stored.
var ErrMalformed = errors.New("the pack is malformed")

// ofPack turns an error about the content of a received pack into ErrMalformed.
func ofPack(err error) error {
	var compressed flate.CorruptInputError
	for _, wrong := range []error{errHead, errDelta, zlib.ErrHeader, zlib.ErrChecksum, zlib.ErrDictionary} {
		if errors.Is(err, wrong) {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	if errors.As(err, &compressed) || errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return err
}

// take writes the pack to the disk while it reads it, and computes the names of the objects that are not deltas.
func (a *arrival) take(in io.Reader) error {
	w := &intake{in: in, out: bufio.NewWriterSize(a.file, 128<<10), sum: newSum()}
	var head [packHead]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return noEOF(err)
	}
	version, count := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	if string(head[:4]) != "PACK" || version != 2 && version != 3 {
		return fmt.Errorf("%w: it does not begin like a pack", ErrMalformed)
	}
	if err := w.flush(); err != nil {
		return err
	}
	a.entries = make([]arrived, 0, min(count, 1<<16))
	buffer := make([]byte, 32<<10)
	a.refs = map[plumbing.Hash][]int32{}
	var z io.ReadCloser
	for i := range count {
		w.crc = 0
		e := arrived{written: written{offset: w.offset()}}
		h, err := readHead(w, e.offset)
		if err != nil {
			return noEOF(err)
		}
		if z == nil {
			z, err = zlib.NewReader(w)
		} else {
			err = z.(zlib.Resetter).Reset(w, nil)
		}
		if err != nil {
			return noEOF(err)
		}
		e.kind = h.kind
		var to io.Writer = io.Discard
		switch h.kind {
		case offsetDelta:
			base := sort.Search(len(a.entries), func(i int) bool { return a.entries[i].offset >= h.base })
			if base == len(a.entries) || a.entries[base].offset != h.base {
				return errHead
			}
			a.deltas = append(a.deltas, delta{int32(base), int32(i)})
		case referenceDelta:
			a.refs[h.ref] = append(a.refs[h.ref], int32(i))
		default:
			a.sum.Reset()
			io.WriteString(a.sum, prefix(h.kind, h.size))
			to = a.sum
		}
		switch n, err := io.CopyBuffer(to, io.LimitReader(z, h.size+1), buffer); {
		case err != nil:
			return noEOF(err)
		case n != h.size:
			return errHead
		case to != io.Discard:
			a.sum.Sum(e.hash[:0])
		}
		if err := w.flush(); err != nil {
			return err
		}
		e.crc = w.crc
		a.entries = append(a.entries, e)
	}
	if err := w.flush(); err != nil {
		return err
	}
	copy(a.checksum[:], w.sum.Sum(nil))
	a.size = w.offset()
	var tail plumbing.Hash
	if _, err := io.ReadFull(w, tail[:]); err != nil {
		return noEOF(err)
	}
	if tail != a.checksum {
		return fmt.Errorf("the pack arrived damaged: %w", zlib.ErrChecksum)
	}
	if err := w.flush(); err != nil {
		return err
	}
	return w.out.Flush()
}

// intake reads from the remote, and passes on what was read: to the disk, to the checksum
// of the pack, and to that of the entry. It implements io.ByteReader, so that zlib does not
// read beyond the end of an entry.
type intake struct {
	in         io.Reader
	out        *bufio.Writer
	sum        hash.Hash
	crc        uint32
	buf        [64 << 10]byte
	done, next int // up to where buf is passed on, and read
	end        int
	passed     int64
}

func (w *intake) offset() int64 { return w.passed + int64(w.next-w.done) }

func (w *intake) flush() error {
	some := w.buf[w.done:w.next]
	w.sum.Write(some)
	w.crc = crc32.Update(w.crc, crc32.IEEETable, some)
	w.passed += int64(len(some))
	w.done = w.next
	_, err := w.out.Write(some)
	return err
}

func (w *intake) fill() error {
	if w.next < w.end {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.done, w.next, w.end = 0, 0, 0
	for range 100 {
		n, err := w.in.Read(w.buf[:])
		if n > 0 {
			w.end = n
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

func (w *intake) ReadByte() (byte, error) {
	if err := w.fill(); err != nil {
		return 0, err
	}
	w.next++
	return w.buf[w.next-1], nil
}

func (w *intake) Read(p []byte) (int, error) {
	if err := w.fill(); err != nil {
		return 0, err
	}
	n := copy(p, w.buf[w.next:w.end])
	w.next += n
	return n, nil
}

// maxPath is how many bytes of bases are kept while deltas to deltas are resolved. Bases
// that are dropped are unpacked again.
const maxPath = 32 << 20

// onPath is a base on the way from an object that is not a delta to the delta that is being
// resolved.
type onPath struct {
	entry    int32
	content  []byte  // nil when it was dropped
	children []int32 // deltas to it that are not resolved yet
}

// resolve computes the names of the objects that are stored as deltas. It starts at each
// object that is not a delta, and goes through all deltas that build on it.
func (a *arrival) resolve() error {
	sort.Slice(a.deltas, func(i, j int) bool {
		if a.deltas[i].base != a.deltas[j].base {
			return a.deltas[i].base < a.deltas[j].base
		}
		return a.deltas[i].entry < a.deltas[j].entry
	})
	left := len(a.deltas)
	for _, waiting := range a.refs {
		left += len(waiting)
	}
	p := &pack{index: &index{}, path: a.file.Name(), data: a.file, size: a.size}
	for i := range a.entries {
		if left == 0 {
			break
		}
		if e := a.entries[i]; e.resolved || e.kind == offsetDelta || e.kind == referenceDelta || !a.isBase(int32(i)) {
			continue
		}
		done, err := a.below(p, int32(i))
		if err != nil {
			return err
		}
		left -= done
	}
	if left > 0 {
		return fmt.Errorf("%w: %d of its objects are deltas to others that are not in it", ErrMalformed, left)
	}
	return nil
}

func (a *arrival) isBase(i int32) bool {
	if _, ok := a.refs[a.entries[i].hash]; ok {
		return true
	}
	n := a.firstDelta(i)
	return n < len(a.deltas) && a.deltas[n].base == i
}

func (a *arrival) firstDelta(base int32) int {
	return sort.Search(len(a.deltas), func(n int) bool { return a.deltas[n].base >= base })
}

// children returns the deltas to an object. It is called once for each object.
func (a *arrival) children(i int32) []int32 {
	var all []int32
	for n := a.firstDelta(i); n < len(a.deltas) && a.deltas[n].base == i; n++ {
		all = append(all, a.deltas[n].entry)
	}
	if more, ok := a.refs[a.entries[i].hash]; ok {
		all = append(all, more...)
		delete(a.refs, a.entries[i].hash)
	}
	return all
}

// below resolves all deltas that build on an object whose name is known. It returns how many they are.
func (a *arrival) below(p *pack, root int32) (done int, err error) {
	kind := a.entries[root].kind
	path := []onPath{{entry: root, children: a.children(root)}}
	kept := 0 // bytes of the contents on the path
	for len(path) > 0 {
		top := len(path) - 1
		if len(path[top].children) == 0 {
			kept -= len(path[top].content)
			path = path[:top]
			continue
		}
		base, err := a.content(p, path, &kept)
		if err != nil {
			return done, err
		}
		n := path[top].children[0]
		path[top].children = path[top].children[1:]
		content, err := a.apply(p, n, base)
		if err != nil {
			return done, err
		}
		e := &a.entries[n]
		e.kind, e.hash, e.resolved = kind, nameOf(a.sum, kind, content), true
		done++
		if children := a.children(n); len(children) > 0 {
			path = append(path, onPath{entry: n, content: content, children: children})
			kept += len(content)
			for i := 0; kept > maxPath && i < len(path)-1; i++ {
				kept -= len(path[i].content)
				path[i].content = nil
			}
		}
	}
	return done, nil
}

// content returns the content of the last base on the path, and unpacks it again if it was dropped.
func (a *arrival) content(p *pack, path []onPath, kept *int) ([]byte, error) {
	top := len(path) - 1
	if path[top].content != nil {
		return path[top].content, nil
	}
	from := top
	for from > 0 && path[from].content == nil {
		from--
	}
	content := path[from].content
	if content == nil {
		h, err := p.head(a.entries[path[0].entry].offset)
		if err != nil {
			return nil, err
		}
		if content, err = p.inflate(h); err != nil {
			return nil, err
		}
	}
	for i := from + 1; i <= top; i++ {
		var err error
		if content, err = a.apply(p, path[i].entry, content); err != nil {
			return nil, err
		}
	}
	if content == nil {
		content = []byte{}
	}
	path[top].content = content
	*kept += len(content)
	return content, nil
}

// apply unpacks a delta.
func (a *arrival) apply(p *pack, n int32, base []byte) ([]byte, error) {
	h, err := p.head(a.entries[n].offset)
	if err != nil {
		return nil, err
	}
	delta, err := p.inflate(h)
	if err != nil {
		return nil, err
	}
	return patch(base, delta)
}

// newFile is a pack that is being made. It becomes part of the store when it gets its index.
type newFile struct {
	store *Store
	file  *os.File
}

func (s *Store) newPack() (*newFile, error) {
	if err := os.MkdirAll(s.packDir(), 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.packDir(), "tmp_pack_*")
	if err != nil {
		return nil, err
	}
	return &newFile{s, f}, nil
}

// discard removes the file, unless keep was called.
func (n *newFile) discard() {
	n.file.Close()
	os.Remove(n.file.Name())
}

// keep writes the index of the pack, and gives both their names.
func (n *newFile) keep(all []written, checksum plumbing.Hash) error {
	if len(all) == 0 {
		return nil
	}
	f, err := os.CreateTemp(n.store.packDir(), "tmp_idx_*")
	if err != nil {
		return err
	}
	err = writeIndex(f, all, checksum)
	if err == nil {
		err = errors.Join(f.Chmod(0o444), n.file.Chmod(0o444))
	}
	err = errors.Join(err, f.Close(), n.file.Close())
	path := filepath.Join(n.store.packDir(), "pack-"+checksum.String())
	if err == nil {
		err = os.Rename(n.file.Name(), path+".pack")
	}
	if err == nil {
		err = os.Rename(f.Name(), path+".idx")
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	_, err = n.store.list()
	return err
}
