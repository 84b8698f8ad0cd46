package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"ordain.dev/ordain/internal/testing/tool"
)

// repository is one that the real git program made.
type repository struct {
	t   testing.TB
	dir string
}

func (r *repository) git(args ...string) string { r.t.Helper(); return r.feed("", args...) }

func (r *repository) feed(input string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = strings.NewReader(input)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

// history makes commits that each change one of a few long files, a large
// file that grows, and a tag.
func history(t testing.TB, commits int) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		tool.Missing(t, "the git program is needed to make repositories for this test")
	}
	r := &repository{t, t.TempDir()}
	r.git("init", "-q", "--bare", "-b", "main")
	r.add(0, commits)
	tag := r.feed(
		"object "+strings.TrimSpace(
			r.git("rev-parse", "main"),
		)+"\ntype commit\ntag v1\ntagger A <a@b> 1700000000 +0000\n\nfirst\n",
		"mktag",
	)
	r.git("update-ref", "refs/tags/v1", strings.TrimSpace(tag))
	return r
}

func (r *repository) add(from, to int) {
	r.t.Helper()
	var in strings.Builder
	for n := from; n < to; n++ {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 1\nx\n", 1_700_000_000+n)
		if n == from && n > 0 {
			in.WriteString("from refs/heads/main^0\n")
		}
		var text strings.Builder
		for line := range 200 {
			if line == n%200 {
				line = -n
			}
			fmt.Fprintf(&text, "line %d of a file\n", line)
		}
		fmt.Fprintf(&in, "M 100644 inline d%d/f%d\ndata %d\n%s\n", n%3, n%7, text.Len(), text.String())
		if n%10 == 0 {
			big := incompressible(maxWhole+n, 1)
			fmt.Fprintf(&in, "M 100644 inline big\ndata %d\n%s\n", len(big), big)
		}
	}
	r.feed(in.String(), "fast-import", "--quiet", "--force")
}

func incompressible(size int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 2))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// names lists all objects that git finds.
func (r *repository) names() []plumbing.Hash {
	r.t.Helper()
	var all []plumbing.Hash
	for line := range strings.Lines(r.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")) {
		all = append(all, plumbing.NewHash(strings.TrimSpace(line)))
	}
	return all
}

func (r *repository) open() *Store {
	r.t.Helper()
	return open(r.t, filepath.Join(r.dir, "objects"))
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// packOf lets git pack everything, and gives the files.
func (r *repository) packOf(args ...string) (pack, idx []byte) {
	r.t.Helper()
	r.git(append([]string{"repack", "-adfq"}, args...)...)
	found, err := filepath.Glob(filepath.Join(r.dir, "objects/pack/*.pack"))
	if err != nil || len(found) != 1 {
		r.t.Fatalf("%v, %v", found, err)
	}
	pack, err = os.ReadFile(found[0])
	if err == nil {
		idx, err = os.ReadFile(strings.TrimSuffix(found[0], ".pack") + ".idx")
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return pack, idx
}

// same holds every object of a store against what git says of it.
func (r *repository) same(s *Store) {
	r.t.Helper()
	for _, h := range r.names() {
		o, err := s.EncodedObject(plumbing.AnyObject, h)
		if err != nil {
			r.t.Fatalf("%s: %v", h, err)
		}
		in, err := o.Reader()
		if err != nil {
			r.t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			r.t.Fatal(err)
		}
		if got := plumbing.ComputeHash(o.Type(), content); got != h {
			r.t.Fatalf("%s has the content of %s", h, got)
		}
		size, err := s.EncodedObjectSize(h)
		if err != nil || size != int64(len(content)) || size != o.Size() {
			r.t.Fatalf("%s: %d bytes, and said to have %d, %d, %v", h, len(content), o.Size(), size, err)
		}
	}
}

// For a pack that git made, with deltas by offset or by name, we write the same index as
// git, and every object can be read.
func TestReceive(t *testing.T) {
	for _, how := range []string{"offsets", "names"} {
		t.Run(how, func(t *testing.T) {
			r := history(t, 60)
			if how == "names" {
				r.git("config", "repack.useDeltaBaseOffset", "false")
			}
			pack, idx := r.packOf("--depth=40", "--window=40")
			if !strings.Contains(r.git("verify-pack", "-s", packPath(t, r)), "chain length = 10") {
				t.Fatal("the pack has no long chains, and proves nothing")
			}
			s := open(t, filepath.Join(t.TempDir(), "objects"))
			if err := s.Receive(bytes.NewReader(pack)); err != nil {
				t.Fatal(err)
			}
			made, err := filepath.Glob(filepath.Join(s.dir, "pack/*.idx"))
			if err != nil || len(made) != 1 {
				t.Fatalf("%v, %v", made, err)
			}
			got, err := os.ReadFile(made[0])
			if err != nil || !bytes.Equal(got, idx) {
				t.Errorf("the index differs from git's: %d and %d bytes, %v", len(got), len(idx), err)
			}
			r.same(s)
			if err := s.HasEncodedObject(plumbing.NewHash("1234567890123456789012345678901234567890")); !errors.Is(
				err,
				plumbing.ErrObjectNotFound,
			) {
				t.Errorf("what is not there: %v", err)
			}
			first := r.names()[0]
			if found, err := s.WithPrefix(first[:2]); err != nil || !slices.Contains(found, first) {
				t.Errorf("by its first bytes: %v, %v", found, err)
			}
		})
	}
}

func packPath(t *testing.T, r *repository) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.dir, "objects/pack/*.pack"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	return found[0]
}

// A store that git wrote can be read, packed and loose.
func TestWhatGitStored(t *testing.T) {
	r := history(t, 25)
	r.same(r.open())
	pack, _ := r.packOf()
	r.same(r.open())
	if err := os.Remove(packPath(t, r)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".idx", ".rev"} {
		_ = os.Remove(strings.TrimSuffix(packPathOf(r, pack), ".pack") + name)
	}
	r.feed(string(pack), "unpack-objects", "-q")
	r.same(r.open())
}

func packPathOf(r *repository, pack []byte) string {
	return filepath.Join(r.dir, "objects/pack", fmt.Sprintf("pack-%x.pack", pack[len(pack)-hashSize:]))
}

// While packs are received and compacted together with loose objects, a reader reads all
// objects again and again, and none is ever missing. In the end there are few packs, which
// git fsck accepts.
func TestCompactingUnderAReader(t *testing.T) {
	tool.Heavy(t, "compacts while others read")
	r := history(t, 30)
	s := open(t, filepath.Join(t.TempDir(), "mirror", "objects"))
	first, _ := r.packOf()
	if err := s.Receive(bytes.NewReader(first)); err != nil {
		t.Fatal(err)
	}
	reader := open(t, s.dir)
	stop, stopped := make(chan bool), make(chan error)
	known := r.names()
	go func() {
		for {
			for _, h := range known {
				if _, err := reader.EncodedObject(plumbing.AnyObject, h); err != nil {
					stopped <- fmt.Errorf("%s: %w", h, err)
					return
				}
			}
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
		}
	}()
	crowded := false
	for n := range 40 {
		before := strings.TrimSpace(r.git("rev-parse", "main"))
		r.add(30+n, 31+n)
		pack := r.feed("main\n^"+before+"\n", "pack-objects", "--revs", "--stdout", "-q")
		if err := s.Receive(strings.NewReader(pack)); err != nil {
			t.Fatal(err)
		}
		o := &plumbing.MemoryObject{}
		o.SetType(plumbing.BlobObject)
		if _, err := fmt.Fprintf(o, "loose %d", n); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(o); err != nil {
			t.Fatal(err)
		}
		if s.Crowded() {
			crowded = true
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.Crowded() {
				t.Error("it is as crowded as it was")
			}
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("who reads meanwhile: %v", err)
	}
	if err := s.Compact(t.Context()); err != nil || !crowded {
		t.Fatal(err, crowded)
	}
	left, _ := filepath.Glob(filepath.Join(s.dir, "pack/*"))
	if len(left) > 6 {
		t.Errorf("left: %v", left)
	}
	if loose, err := s.looseNames(); err != nil || len(loose) > 0 {
		t.Errorf("%d loose objects are left, %v", len(loose), err)
	}
	r.same(reader)
	r.same(open(t, s.dir))
	r.fsck(s)
}

// fsck checks a store with git.
func (r *repository) fsck(s *Store) {
	r.t.Helper()
	bare := filepath.Dir(s.dir)
	head := []byte("ref: refs/heads/main\n")
	if err := errors.Join(
		os.WriteFile(filepath.Join(bare, "HEAD"), head, 0o644),
		os.MkdirAll(filepath.Join(bare, "refs/heads"), 0o755),
		os.WriteFile(filepath.Join(bare, "refs/heads/main"), []byte(r.git("rev-parse", "main")), 0o644),
	); err != nil {
		r.t.Fatal(err)
	}
	(&repository{r.t, bare}).git("fsck", "--full", "--strict")
}

// When half of the history is no longer needed, Prune removes what only that half
// needs. It keeps what a root needs, even if that is stored as a delta to a removed
// object.
func TestPruning(t *testing.T) {
	r := history(t, 40)
	pack, _ := r.packOf()
	s := open(t, filepath.Join(t.TempDir(), "mirror", "objects"))
	if err := s.Receive(bytes.NewReader(pack)); err != nil {
		t.Fatal(err)
	}
	all := len(r.names())
	r.git("update-ref", "refs/heads/main", "main~20")
	r.git("update-ref", "-d", "refs/tags/v1")
	r.git("-c", "gc.reflogExpire=now", "reflog", "expire", "--all", "--expire=now")
	root := plumbing.NewHash(strings.TrimSpace(r.git("rev-parse", "main")))
	needed := strings.Count(r.git("rev-list", "--objects", "main"), "\n")
	nobody := plumbing.NewHash("1234567890123456789012345678901234567890")
	dropped, err := s.Prune(t.Context(), []plumbing.Hash{root, nobody}, nil)
	if err != nil || dropped != all-needed || needed == all {
		t.Fatalf("%d dropped of %d, of which %d are needed; %v", dropped, all, needed, err)
	}
	count := 0
	if err := s.each(func(plumbing.Hash) error { count++; return nil }); err != nil || count != needed {
		t.Errorf("%d are left, %v", count, err)
	}
	r.packOf() // in which only main is
	r.git("prune", "--expire=now")
	r.same(s)
	r.fsck(s)
	if dropped, err := s.Prune(t.Context(), []plumbing.Hash{root}, nil); err != nil || dropped != 0 {
		t.Errorf("again: %d, %v", dropped, err)
	}
	// Cut off after two commits, as a fetch with a depth leaves it.
	parent := plumbing.NewHash(strings.TrimSpace(r.git("rev-parse", "main~1")))
	if _, err := s.Prune(t.Context(), []plumbing.Hash{root}, map[plumbing.Hash]bool{parent: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.HasEncodedObject(plumbing.NewHash(strings.TrimSpace(r.git("rev-parse", "main~2")))); !errors.Is(
		err,
		plumbing.ErrObjectNotFound,
	) {
		t.Errorf("what was cut off: %v", err)
	}
	// What lacks something is damaged: nothing of it is thrown away.
	if _, err := s.Prune(t.Context(), []plumbing.Hash{root}, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	if err := s.HasEncodedObject(parent); err != nil {
		t.Error(err)
	}
}

// When a file of the store is damaged in any way, opening or reading returns ErrDamaged,
// and never wrong content.
func TestDamage(t *testing.T) {
	r := history(t, 12)
	pack, idx := r.packOf()
	path := packPathOf(r, pack)
	names := r.names()
	damages := map[string]func() (pack, idx []byte){
		"index empty":           func() ([]byte, []byte) { return pack, nil },
		"index cut":             func() ([]byte, []byte) { return pack, idx[:len(idx)/2] },
		"index without its end": func() ([]byte, []byte) { return pack, idx[:len(idx)-1] },
		"index longer":          func() ([]byte, []byte) { return pack, append(slices.Clone(idx), 0) },
		"index of version 1":    func() ([]byte, []byte) { return pack, idx[8:] },
		"index zeros":           func() ([]byte, []byte) { return pack, make([]byte, len(idx)) },
		"index offsets zeros": func() ([]byte, []byte) {
			return pack, zeroed(idx, indexHead+len(names)*(hashSize+4), len(names)*4)
		},
		"index offsets ones": func() ([]byte, []byte) {
			bad := slices.Clone(idx)
			for i := range len(names) * 4 {
				bad[indexHead+len(names)*(hashSize+4)+i] = 0xff
			}
			return pack, bad
		},
		"pack lost":  func() ([]byte, []byte) { return nil, idx },
		"pack cut":   func() ([]byte, []byte) { return pack[:len(pack)/2], idx },
		"pack empty": func() ([]byte, []byte) { return []byte{}, idx },
		"zeros within the pack": func() ([]byte, []byte) {
			return zeroed(pack, packHead, len(pack)-packHead-hashSize), idx
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			pack, idx := damage()
			dir := filepath.Join(t.TempDir(), "objects")
			base := filepath.Join(dir, "pack", strings.TrimSuffix(filepath.Base(path), ".pack"))
			err := errors.Join(os.MkdirAll(filepath.Dir(base), 0o755), os.WriteFile(base+".idx", idx, 0o644))
			if err != nil {
				t.Fatal(err)
			}
			if pack != nil {
				if err := os.WriteFile(base+".pack", pack, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(dir)
			if err == nil {
				defer s.Close()
				for _, h := range names {
					var o plumbing.EncodedObject
					if o, err = s.EncodedObject(plumbing.AnyObject, h); err != nil {
						break
					}
					if o.Size() <= maxWhole {
						t.Errorf("%s can be read", h)
					}
				}
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%v", err)
			}
		})
	}
}

func zeroed(b []byte, from, n int) []byte {
	b = slices.Clone(b)
	clear(b[from : from+n])
	return b
}

// When a pack breaks off or is changed anywhere, nothing of it is kept, not even the file.
func TestDamagedPacksAreNotKept(t *testing.T) {
	r := history(t, 9)
	pack, _ := r.packOf()
	s := open(t, filepath.Join(t.TempDir(), "objects"))
	refused := func(what string, pack []byte) {
		t.Helper()
		if err := s.Receive(bytes.NewReader(pack)); err == nil {
			t.Errorf("%s was taken", what)
		}
		if left, _ := filepath.Glob(filepath.Join(s.packDir(), "*")); len(left) > 0 {
			t.Fatalf("%s left %v", what, left)
		}
	}
	for cut := 0; cut < len(pack); cut += 1 + len(pack)/60 {
		refused(fmt.Sprintf("the first %d bytes", cut), pack[:cut])
		bad := slices.Clone(pack)
		bad[cut] ^= 0x41
		refused(fmt.Sprintf("another byte at %d", cut), bad)
	}
}

// Deltas that unfold to more than fits into memory, that only claim to, or that refer to
// themselves are refused.
func TestHostilePacks(t *testing.T) {
	base := bytes.Repeat([]byte("x"), 1<<16)
	bomb := []byte{0x80, 0x80, 4, 0x80, 0x80, 0x80, 0x80, 0x40} // from 64 KiB to 16 GiB
	for range 1000 {
		bomb = append(bomb, 0x80)
	}
	short := []byte{0x80, 0x80, 4, 10, 0x80}
	outside := []byte{0x80, 0x80, 4, 10, 0x9f, 0xff, 0xff, 0xff, 0xff, 10}
	for name, delta := range map[string][]byte{
		"bomb": bomb, "longer than it says": short, "outside of its base": outside, "no delta": {1}, "empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			err := open(t, filepath.Join(t.TempDir(), "o")).Receive(bytes.NewReader(craft(t, base, delta, false)))
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("base of nobody", func(t *testing.T) {
		err := open(
			t,
			filepath.Join(t.TempDir(), "o"),
		).Receive(bytes.NewReader(craft(t, base, []byte{0x80, 0x80, 4, 1, 1, 'x'}, true)))
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "not in it") {
			t.Errorf("%v", err)
		}
	})
}

// craft makes a pack of a file and of a difference to it, or to nothing that is there.
func craft(t testing.TB, base, delta []byte, lost bool) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := newPackWriter(&out, 2)
	if err != nil {
		t.Fatal(err)
	}
	o := &plumbing.MemoryObject{}
	o.SetType(plumbing.BlobObject)
	if _, err := o.Write(base); err != nil {
		t.Fatal(err)
	}
	if err := w.whole(o.Hash(), o); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w.zip.Reset(&packed)
	if _, err := w.zip.Write(delta); err != nil {
		t.Fatal(err)
	}
	if err := w.zip.Close(); err != nil {
		t.Fatal(err)
	}
	if lost {
		err = w.copied(plumbing.ZeroHash, referenceDelta, int64(len(delta)), 0,
			io.MultiReader(bytes.NewReader(make([]byte, hashSize)), &packed))
	} else {
		err = w.copied(plumbing.ZeroHash, offsetDelta, int64(len(delta)), packHead, &packed)
	}
	if err == nil {
		_, err = w.finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Hashes that somebody chose are not distributed evenly. They are found nevertheless.
func TestAnIndexOfUnevenNames(t *testing.T) {
	var all []written
	for i := range 5000 {
		var h plumbing.Hash
		h[0], h[1] = 7, byte(i%2)
		copy(h[16:], []byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
		all = append(all, written{hash: h, offset: int64(i)<<24 + packHead})
	}
	path := filepath.Join(t.TempDir(), "x.idx")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(writeIndex(f, slices.Clone(all), plumbing.ZeroHash), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	x, err := openIndex(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	for _, w := range all {
		if offset, ok, err := x.find(w.hash); !ok || err != nil || offset != w.offset {
			t.Fatalf("%s: %d, %v, %v; want %d", w.hash, offset, ok, err, w.offset)
		}
		w.hash[10] = 1
		if _, ok, err := x.find(w.hash); ok || err != nil {
			t.Fatalf("%s: %v, %v", w.hash, ok, err)
		}
	}
}

// Whatever is received is either refused, or can be read completely.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
	for _, lost := range []bool{false, true} {
		pack := craft(f, []byte("one line\n"), []byte{9, 10, 0x90, 9, 1, 'x'}, lost)
		f.Add(pack[:len(pack)-hashSize])
	}
	f.Fuzz(func(t *testing.T, pack []byte) {
		s := open(t, filepath.Join(t.TempDir(), "objects"))
		sum := newSum()
		sum.Write(pack)
		if err := s.Receive(bytes.NewReader(sum.Sum(pack))); err != nil {
			return
		}
		if err := s.each(func(h plumbing.Hash) error {
			_, err := s.EncodedObject(plumbing.AnyObject, h)
			return err
		}); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Compact(ctx); err != nil {
			t.Error(err)
		}
	})
}
