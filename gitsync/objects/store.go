package objects

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Store is the folder "objects" of a repository. Reading is safe for
// concurrent use.
type Store struct {
	dir string

	mu      sync.Mutex
	packs   []*pack
	retired []*pack   // gone from the disk, but open until Close, because somebody may be reading them
	listed  time.Time // when the folder of packs was listed
	changed time.Time // the modification time that the folder had then
	cache   cache
}

var _ storer.EncodedObjectStorer = (*Store)(nil)

// Open opens the store in a folder. It reads little more than the names of the packs.
func Open(dir string) (*Store, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	s := &Store{dir: dir}
	if _, err := s.list(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close closes all files. Objects that are streamed cannot be read any more.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range append(s.packs, s.retired...) {
		p.close()
	}
	s.packs, s.retired = nil, nil
	s.cache.clear()
}

func (s *Store) packDir() string { return filepath.Join(s.dir, "pack") }

// list lists the packs again if the folder may have changed. It returns whether there are new ones.
func (s *Store) list() (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	info, err := os.Stat(s.packDir())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A change within the same clock tick does not change the modification time.
	if info.ModTime().Equal(s.changed) && s.listed.Sub(s.changed) > time.Second {
		return false, nil
	}
	entries, err := os.ReadDir(s.packDir())
	if err != nil {
		return false, err
	}
	s.listed, s.changed = now, info.ModTime()
	known := map[string]*pack{}
	for _, p := range s.packs {
		known[p.path] = p
	}
	var packs []*pack
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".idx") || !strings.HasPrefix(e.Name(), "pack-") {
			continue
		}
		path := packName(filepath.Join(s.packDir(), e.Name()))
		if p := known[path]; p != nil {
			packs = append(packs, p)
			delete(known, path)
			continue
		}
		p, err := openPack(filepath.Join(s.packDir(), e.Name()), path)
		if err != nil {
			s.packs = append(s.packs, packs...) // so that Close closes them
			return false, err
		}
		if p != nil {
			packs, changed = append(packs, p), true
		}
	}
	for _, p := range known {
		s.retired = append(s.retired, p)
	}
	// The largest first: it has most objects.
	slices.SortFunc(packs, func(a, b *pack) int { return int(b.count() - a.count()) })
	s.packs = packs
	return changed, nil
}

// openPack opens a pack that was listed. It returns nil without an error when the pack has
// been removed since, which begins with the index.
func openPack(indexPath, path string) (*pack, error) {
	x, err := openIndex(indexPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err = os.Stat(path); err != nil {
		x.close()
		if _, there := os.Stat(indexPath); errors.Is(there, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, damaged("a pack is missing: %w", err)
	}
	return &pack{index: x, path: path}, nil
}

// find returns the open pack that has an object, and its offset in the pack.
func (s *Store) find(h plumbing.Hash) (*pack, int64, error) {
	s.mu.Lock()
	packs := s.packs
	s.mu.Unlock()
	for _, p := range packs {
		offset, ok, err := p.find(h)
		if err != nil {
			return nil, 0, err
		}
		if !ok {
			continue
		}
		if err := p.open(); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was compacted into another pack
			}
			return nil, 0, err
		}
		return p, offset, nil
	}
	return nil, 0, plumbing.ErrObjectNotFound
}

// lookUp finds an object in a pack, or opens its loose file.
func (s *Store) lookUp(h plumbing.Hash) (p *pack, offset int64, loose *os.File, err error) {
	for range 2 {
		if p, offset, err = s.find(h); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return p, offset, nil, err
		}
		loose, err = os.Open(s.loosePath(h))
		if err == nil {
			return nil, 0, loose, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, nil, err
		}
		changed, err := s.list()
		if err != nil {
			return nil, 0, nil, err
		}
		if !changed {
			break
		}
	}
	return nil, 0, nil, plumbing.ErrObjectNotFound
}

// HasEncodedObject implements storer.EncodedObjectStorer.
func (s *Store) HasEncodedObject(h plumbing.Hash) error {
	_, _, loose, err := s.lookUp(h)
	if loose != nil {
		loose.Close()
	}
	return err
}

// EncodedObject implements storer.EncodedObjectStorer. Objects that are read into memory are
// checked against their hash. Large files are streamed, and the reader has to check them.
func (s *Store) EncodedObject(kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	p, offset, loose, err := s.lookUp(h)
	if err != nil {
		return nil, err
	}
	var o *stored
	if p != nil {
		o, err = s.packed(p, offset, h)
	} else {
		o, err = s.loose(loose, h)
	}
	if err != nil {
		return nil, err
	}
	if kind != plumbing.AnyObject && kind != o.kind {
		return nil, plumbing.ErrObjectNotFound
	}
	return o, nil
}

// EncodedObjectSize implements storer.EncodedObjectStorer; it does not read the object.
func (s *Store) EncodedObjectSize(h plumbing.Hash) (int64, error) {
	p, offset, loose, err := s.lookUp(h)
	if err != nil {
		return 0, err
	}
	if p == nil {
		defer loose.Close()
		_, size, in, err := looseHead(loose)
		if err != nil {
			return 0, err
		}
		return size, in.Close()
	}
	head, err := p.head(offset)
	if err != nil || head.kind != offsetDelta && head.kind != referenceDelta {
		return head.size, err
	}
	in, err := p.unzip(head)
	if err != nil {
		return 0, damaged("at %d of %s: %w", offset, p.path, err)
	}
	defer in.Close()
	var start [20]byte
	n, err := io.ReadFull(in, start[:min(int64(len(start)), head.size)])
	if err != nil {
		return 0, damaged("at %d of %s: %w", offset, p.path, err)
	}
	return deltaSize(start[:n])
}

// maxWhole is the largest file, in bytes, that is read into memory rather than streamed.
const maxWhole = 1 << 20

// packed reads the object at an offset of a pack.
func (s *Store) packed(p *pack, offset int64, h plumbing.Hash) (*stored, error) {
	head, err := p.head(offset)
	if err != nil {
		return nil, err
	}
	if head.kind == plumbing.BlobObject && head.size > maxWhole {
		return &stored{
			kind: head.kind,
			hash: h,
			size: head.size,
			open: func() (io.ReadCloser, error) { return p.unzip(head) },
		}, nil
	}
	kind, content, err := s.unpack(p, offset, head)
	if err != nil {
		return nil, err
	}
	if nameOf(newSum(), kind, content) != h {
		return nil, damaged("object %s has another content", h)
	}
	return &stored{kind: kind, hash: h, size: int64(len(content)), content: content}, nil
}

// unpack reads an object by applying its chain of deltas.
func (s *Store) unpack(p *pack, offset int64, head entryHead) (plumbing.ObjectType, []byte, error) {
	type step struct {
		offset int64
		head   entryHead
	}
	var chain []step
	var at cached
	for {
		s.mu.Lock()
		known, ok := s.cache.get(place{p, offset})
		s.mu.Unlock()
		if ok {
			at = known
			break
		}
		if head.kind != offsetDelta && head.kind != referenceDelta {
			content, err := p.inflate(head)
			if err != nil {
				return 0, nil, err
			}
			at = cached{place{p, offset}, head.kind, content}
			s.remember(at)
			break
		}
		// Only a cycle is longer than the pack.
		if chain = append(chain, step{offset, head}); int64(len(chain)) > p.count() {
			return 0, nil, damaged("at %d of %s: a cycle of deltas", offset, p.path)
		}
		offset = head.base
		if head.kind == referenceDelta {
			var ok bool
			var err error
			if offset, ok, err = p.find(head.ref); err != nil || !ok {
				return 0, nil, errors.Join(err,
					damaged("at %d of %s: the base %s is missing", offset, p.path, head.ref))
			}
		}
		var err error
		if head, err = p.head(offset); err != nil {
			return 0, nil, err
		}
	}
	for _, step := range slices.Backward(chain) {
		delta, err := p.inflate(step.head)
		if err != nil {
			return 0, nil, err
		}
		content, err := patch(at.content, delta)
		if err != nil {
			return 0, nil, damaged("at %d of %s: %w", step.offset, p.path, err)
		}
		at = cached{place{p, step.offset}, at.kind, content}
		s.remember(at)
	}
	return at.kind, at.content, nil
}

func (s *Store) remember(o cached) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.put(o)
}

// stored is an object of a Store. Its content must not be changed.
type stored struct {
	kind    plumbing.ObjectType
	hash    plumbing.Hash
	size    int64
	content []byte
	open    func() (io.ReadCloser, error) // set instead of content when it is streamed
}

var _ plumbing.EncodedObject = (*stored)(nil)

func (o *stored) Hash() plumbing.Hash             { return o.hash }
func (o *stored) Type() plumbing.ObjectType       { return o.kind }
func (o *stored) SetType(plumbing.ObjectType)     {}
func (o *stored) Size() int64                     { return o.size }
func (o *stored) SetSize(int64)                   {}
func (o *stored) Writer() (io.WriteCloser, error) { return nil, errReadOnly }

var errReadOnly = errors.New("an object that is stored cannot be changed")

func (o *stored) Reader() (io.ReadCloser, error) {
	if o.open != nil {
		return o.open()
	}
	return whole{bytes.NewReader(o.content)}, nil
}

// whole reads an object in memory. It can seek, which go-git makes use of.
type whole struct{ *bytes.Reader }

func (whole) Close() error { return nil }

// NewEncodedObject implements storer.EncodedObjectStorer.
func (s *Store) NewEncodedObject() plumbing.EncodedObject { return &plumbing.MemoryObject{} }

// SetEncodedObject implements storer.EncodedObjectStorer.
func (s *Store) SetEncodedObject(o plumbing.EncodedObject) (plumbing.Hash, error) {
	return o.Hash(), s.Put(o)
}

// IterEncodedObjects implements storer.EncodedObjectStorer.
func (s *Store) IterEncodedObjects(kind plumbing.ObjectType) (storer.EncodedObjectIter, error) {
	var all []plumbing.Hash
	err := s.each(func(h plumbing.Hash) error { all = append(all, h); return nil })
	if err != nil {
		return nil, err
	}
	if kind != plumbing.AnyObject {
		var of []plumbing.Hash
		for _, h := range all {
			if _, err := s.EncodedObject(kind, h); err == nil {
				of = append(of, h)
			} else if !errors.Is(err, plumbing.ErrObjectNotFound) {
				return nil, err
			}
		}
		all = of
	}
	return storer.NewEncodedObjectLookupIter(s, kind, all), nil
}

// AddAlternate implements storer.EncodedObjectStorer. A Store has no alternates.
func (s *Store) AddAlternate(string) error { return errReadOnly }

// each calls visit with every object once.
func (s *Store) each(visit func(plumbing.Hash) error) error {
	loose, err := s.looseNames()
	if err != nil {
		return err
	}
	seen := map[plumbing.Hash]bool{}
	once := func(h plumbing.Hash) error {
		if seen[h] {
			return nil
		}
		seen[h] = true
		return visit(h)
	}
	s.mu.Lock()
	packs := s.packs
	s.mu.Unlock()
	for _, p := range packs {
		if err := p.each(0, func(_ int64, h plumbing.Hash) (bool, error) { return true, once(h) }); err != nil {
			return err
		}
	}
	for _, h := range loose {
		if err := once(h); err != nil {
			return err
		}
	}
	return nil
}

// WithPrefix returns the objects whose hash begins with some bytes.
func (s *Store) WithPrefix(start []byte) ([]plumbing.Hash, error) {
	var found []plumbing.Hash
	if _, err := s.list(); err != nil || len(start) > hashSize {
		return nil, err
	}
	if len(start) == 0 {
		err := s.each(func(h plumbing.Hash) error { found = append(found, h); return nil })
		return found, err
	}
	add := func(h plumbing.Hash) {
		if bytes.HasPrefix(h[:], start) && !slices.Contains(found, h) {
			found = append(found, h)
		}
	}
	loose, err := s.looseWithByte(start[0])
	if err != nil {
		return nil, err
	}
	for _, h := range loose {
		add(h)
	}
	s.mu.Lock()
	packs := s.packs
	s.mu.Unlock()
	for _, p := range packs {
		err := p.each(p.fan[start[0]], func(_ int64, h plumbing.Hash) (bool, error) {
			add(h)
			return bytes.Compare(h[:len(start)], start) <= 0, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
