package resources_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/resources"
	"ordain.dev/ordain/server/cluster/task"
)

// shop has contents by hash, and counts how often they are fetched.
type shop struct {
	mu       sync.Mutex
	contents map[string]string
	fetched  atomic.Int32
	wait     chan struct{} // if set, a fetch waits for it, or for the end of its context
	begun    chan struct{}
}

func (s *shop) fetch(ctx context.Context, hash string) (io.ReadCloser, error) {
	s.fetched.Add(1)
	s.mu.Lock()
	content, wait := s.contents[hash], s.wait
	s.mu.Unlock()
	if wait != nil {
		s.begun <- struct{}{}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// file puts a content into the shop.
func (s *shop) file(name, content string) task.Resource {
	sum := sha256.Sum256([]byte(content))
	hash := hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents[hash] = content
	return task.Resource{Type: "files", Name: name, Format: resources.File, Hash: hash, Size: int64(len(content))}
}

func open(t *testing.T, s *shop, folder string, size int64) *resources.Store {
	t.Helper()
	store, err := resources.Open(resources.Config{Folder: folder, Max: size, Fetch: s.fetch})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func use(t *testing.T, store *resources.Store, r ...task.Resource) *resources.Set {
	t.Helper()
	set, err := store.Use(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func newShop() *shop { return &shop{contents: map[string]string{}} }

// Many tasks ask for a resource at once, and again after the provisioner has started again: it is fetched once.
func TestFetchedOnce(t *testing.T) {
	s, dir := newShop(), t.TempDir()
	r := s.file("key", "the key")
	store := open(t, s, dir, 0)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			set := use(t, store, r)
			defer set.Release()
			path, err := set.Path("files", "key")
			if err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "the key" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	all.Wait()
	if err := os.Mkdir(filepath.Join(dir, "new-left"), 0o755); err != nil { // by a crash
		t.Fatal(err)
	}
	use(t, open(t, s, dir, 0), r).Release()
	if n := s.fetched.Load(); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	if found, _ := os.ReadDir(dir); len(found) != 1 {
		t.Errorf("the folder has %v", found)
	}
}

// The task that fetches a resource is cut off; another one that waits for the same resource gets it.
func TestFetcherCutOff(t *testing.T) {
	s := newShop()
	s.wait, s.begun = make(chan struct{}), make(chan struct{}, 2)
	r := s.file("key", "the key")
	store := open(t, s, t.TempDir(), 0)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := store.Use(ctx, []task.Resource{r})
		first <- err
	}()
	<-s.begun
	go func() {
		set, err := store.Use(t.Context(), []task.Resource{r})
		if err == nil {
			set.Release()
		}
		second <- err
	}()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-s.begun
	close(s.wait)
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// What nobody uses is removed when there is too much, the least recently used first. What a task uses stays.
func TestLeastRecentlyUsed(t *testing.T) {
	s, dir := newShop(), t.TempDir()
	size := 1000
	a, b, c := s.file(
		"a",
		strings.Repeat("a", size),
	), s.file(
		"b",
		strings.Repeat("b", size),
	), s.file(
		"c",
		strings.Repeat("c", size),
	)
	store := open(t, s, dir, 2500)
	held := use(t, store, a)
	use(t, store, b).Release()
	use(t, store, c).Release()
	if path, _ := held.Path("files", "a"); !exists(path) {
		t.Error("a file that is in use was removed")
	}
	use(t, store, c).Release()
	if n := s.fetched.Load(); n != 3 {
		t.Errorf("fetched %d times", n)
	}
	use(t, store, b).Release() // was removed for c
	if n := s.fetched.Load(); n != 4 {
		t.Errorf("fetched %d times", n)
	}
	held.Release()
	held.Release()
	if found, _ := os.ReadDir(dir); len(found) != 2 {
		t.Errorf("the folder has %v", found)
	}
	open(t, s, dir, 1)
	if found, _ := os.ReadDir(dir); len(found) != 0 {
		t.Errorf("the folder has %v after its size was lowered", found)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Files have the permissions of their type, archives are unpacked, and other permissions make another file.
func TestPermissions(t *testing.T) {
	s := newShop()
	store := open(t, s, t.TempDir(), 0)
	plain := s.file("content", "x")
	open := plain
	open.Type, open.Permissions = "open", "0444"
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, h := range []tar.Header{{Name: "content/run", Mode: 0o755}, {Name: "content/read", Mode: 0o644}} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	books := s.file("content", packed.String())
	books.Type, books.Format, books.Permissions = "books", resources.Archive, "0440"
	set := use(t, store, plain, open, books)
	defer set.Release()
	for _, want := range []struct {
		kind, below string
		mode        os.FileMode
	}{
		{"files", "", 0o400}, {"open", "", 0o444},
		{"books", "run", 0o550}, {"books", "read", 0o440}, {"books", "", os.ModeDir | 0o750},
	} {
		path, err := set.Path(want.kind, "content")
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(path, want.below))
		if err != nil || info.Mode() != want.mode {
			t.Errorf("%s %s: %v, %v, want %v", want.kind, want.below, info, err, want.mode)
		}
	}
}

// A resource that is not what the task says, or wants to be elsewhere, is refused, and leaves nothing.
func TestRefused(t *testing.T) {
	s, dir := newShop(), t.TempDir()
	store := open(t, s, dir, 0)
	good := s.file("a", "content")
	for what, change := range map[string]func(*task.Resource){
		"name":        func(r *task.Resource) { r.Name = "../a" },
		"dots":        func(r *task.Resource) { r.Name = ".." },
		"hash":        func(r *task.Resource) { r.Hash = "../../etc" },
		"other hash":  func(r *task.Resource) { r.Hash = strings.Repeat("ab", 32) },
		"size":        func(r *task.Resource) { r.Size-- },
		"larger":      func(r *task.Resource) { r.Size++ },
		"format":      func(r *task.Resource) { r.Format = "disk" },
		"permissions": func(r *task.Resource) { r.Permissions = "4755" },
		"no archive":  func(r *task.Resource) { r.Format = resources.Archive },
	} {
		r := good
		change(&r)
		_, err := store.Use(t.Context(), []task.Resource{r})
		if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if found, _ := os.ReadDir(dir); len(found) != 0 {
		t.Errorf("the folder has %v", found)
	}
	set := use(t, store, good)
	defer set.Release()
	if _, err := set.Path("files", "b"); !fault.Is(err, fault.NotFound) ||
		!strings.Contains(err.Error(), "these are there: a") {
		t.Error(err)
	}
}
