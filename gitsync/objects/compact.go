package objects

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
)

// Crowded reports whether there are so many packs or loose objects that Compact would
// make reading faster.
func (s *Store) Crowded() bool {
	s.mu.Lock()
	packs := len(s.packs)
	s.mu.Unlock()
	const mostPacks, mostLoose = 16, 2048
	if packs > mostPacks {
		return true
	}
	some, err := s.looseWithByte(0x17) // as good as any byte: hashes are distributed evenly
	return err == nil && len(some) > mostLoose/256
}

// Compact combines the loose objects and the small packs into one pack. A pack with
// twice as many objects as all smaller ones together stays as it is, so that the work
// is proportional to what is new. Nobody else may write at the same time.
func (s *Store) Compact(ctx context.Context) error {
	if _, err := s.list(); err != nil {
		return err
	}
	loose, err := s.looseNames()
	if err != nil {
		return err
	}
	s.mu.Lock()
	packs := slices.Clone(s.packs)
	s.mu.Unlock()
	smaller := int64(len(loose))
	for _, p := range packs {
		smaller += p.count()
	}
	stay := 0
	for _, p := range packs {
		if smaller -= p.count(); p.count() < 2*smaller {
			break
		}
		stay++
	}
	if len(loose) == 0 && len(packs)-stay < 2 {
		return nil
	}
	return s.rewrite(ctx, packs[stay:], loose, func(h plumbing.Hash) (bool, error) {
		for _, p := range packs[:stay] {
			if _, ok, err := p.find(h); ok || err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// Prune removes the objects that no root needs, and returns how many. cut are the
// commits whose parents are not in the store. Roots may be missing, but nothing that
// they need. Nobody else may write at the same time.
func (s *Store) Prune(ctx context.Context, roots []plumbing.Hash, cut map[plumbing.Hash]bool) (dropped int, err error) {
	if _, err := s.list(); err != nil {
		return 0, err
	}
	needed, err := s.reach(ctx, roots, cut)
	if err != nil {
		return 0, err
	}
	if err := s.each(func(h plumbing.Hash) error {
		if !needed[h] {
			dropped++
		}
		return nil
	}); err != nil || dropped == 0 {
		return 0, err
	}
	loose, err := s.looseNames()
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	packs := slices.Clone(s.packs)
	s.mu.Unlock()
	return dropped, s.rewrite(ctx, packs, loose, func(h plumbing.Hash) (bool, error) { return needed[h], nil })
}

// moved is an entry of a pack whose objects move to a new pack.
type moved struct {
	offset int64
	hash   plumbing.Hash
	wanted bool
	to     int64 // offset in the new pack; 0 until it is written
}

// entries returns the entries of a pack in the order of their offsets.
func (p *pack) entries() ([]moved, error) {
	all := make([]moved, 0, p.count())
	err := p.each(0, func(i int64, h plumbing.Hash) (bool, error) {
		offset, err := p.offset(i)
		all = append(all, moved{offset: offset, hash: h})
		return err == nil, err
	})
	slices.SortFunc(all, func(a, b moved) int { return cmp.Compare(a.offset, b.offset) })
	return all, err
}

// rewrite writes the wanted objects of packs and loose files into one new pack, and then
// removes the old ones.
func (s *Store) rewrite(
	ctx context.Context,
	packs []*pack,
	loose []plumbing.Hash,
	want func(plumbing.Hash) (bool, error),
) error {
	count := 0
	seen := map[plumbing.Hash]bool{}
	first := func(h plumbing.Hash) (bool, error) {
		if seen[h] {
			return false, nil
		}
		ok, err := want(h)
		if ok {
			seen[h] = true
			count++
		}
		return ok, err
	}
	from := make([][]moved, len(packs))
	for n, p := range packs {
		if err := p.open(); err != nil {
			return err
		}
		var err error
		if from[n], err = p.entries(); err != nil {
			return err
		}
		for i := range from[n] {
			if from[n][i].wanted, err = first(from[n][i].hash); err != nil {
				return err
			}
		}
	}
	var alone []plumbing.Hash
	for _, h := range loose {
		ok, err := first(h)
		if err != nil {
			return err
		}
		if ok {
			alone = append(alone, h)
		}
	}
	out, err := s.newPack()
	if err != nil {
		return err
	}
	defer out.discard()
	w, err := newPackWriter(out.file, count)
	if err != nil {
		return err
	}
	for n, p := range packs {
		for i := range from[n] {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.move(w, p, from[n], i); err != nil {
				return err
			}
		}
	}
	for _, h := range alone {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := os.Open(s.loosePath(h))
		if err != nil {
			return err
		}
		o, err := s.loose(f, h)
		if err == nil {
			err = w.whole(h, o)
		}
		if err != nil {
			return err
		}
	}
	checksum, err := w.finish()
	if err == nil {
		err = out.keep(w.all, checksum)
	}
	if err != nil {
		return err
	}
	return s.remove(packs, loose, filepath.Join(s.packDir(), "pack-"+checksum.String()+".pack"))
}

// move writes one entry to the new pack. It copies the compressed bytes, unless the entry
// is a delta whose base is not in the new pack before it.
func (s *Store) move(w *packWriter, p *pack, all []moved, i int) error {
	e := &all[i]
	if !e.wanted {
		return nil
	}
	head, err := p.head(e.offset)
	if err != nil {
		return err
	}
	e.to = w.offset
	base := int64(0)
	if head.kind == referenceDelta {
		if head.base, _, err = p.find(head.ref); err != nil {
			return err
		}
	}
	if head.kind == offsetDelta || head.kind == referenceDelta {
		b := sort.Search(i, func(n int) bool { return all[n].offset >= head.base })
		if b < i && all[b].offset == head.base {
			base = all[b].to
		}
		if base == 0 {
			o, err := s.packed(p, e.offset, e.hash)
			if err != nil {
				return err
			}
			return w.whole(e.hash, o)
		}
	}
	end := p.size
	if i+1 < len(all) {
		end = all[i+1].offset
	}
	if end < head.data {
		return damaged("the entries of %s overlap", p.path)
	}
	return w.copied(e.hash, head.kind, head.size, base, io.NewSectionReader(p.data, head.data, end-head.data))
}

// remove removes packs and loose objects, except for the pack at the path but. It removes
// the index of a pack first, so that no pack is listed that is gone.
func (s *Store) remove(packs []*pack, loose []plumbing.Hash, but string) error {
	gone := func(path string) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	for _, p := range packs {
		if p.path == but {
			continue
		}
		base := p.path[:len(p.path)-len(".pack")]
		// git may have put other files beside the pack, which are of no use without it.
		for _, suffix := range []string{".idx", ".pack", ".rev", ".bitmap", ".mtimes", ".keep"} {
			if err := gone(base + suffix); err != nil {
				return err
			}
		}
	}
	for _, h := range loose {
		if err := gone(s.loosePath(h)); err != nil {
			return err
		}
	}
	_, err := s.list()
	return err
}
