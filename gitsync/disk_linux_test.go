package gitsync

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// smallDisk mounts a file system with very little room.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("this user may not mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// noise returns text that does not compress.
func noise(size int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range size {
		b.WriteByte(byte('!' + r.IntN(90)))
	}
	return b.String()
}

// When a commit needs more room than is left, the checkout stays as it is, and works again
// when there is room.
func TestDiskFullAtTheCheckout(t *testing.T) {
	disk := smallDisk(t)
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(disk, "compiler")
	one := o.push("small", map[string]string{"a": "1", "b": "2"})
	src := Source{URL: o.bare, Branch: "main"}
	fetch(t, s, src)
	checkout(t, s, src, one, dir)
	if err := os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 200<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	two := o.push("big", map[string]string{"a": "now 2", "b": "", "big": noise(350 << 10)})
	fetch(t, s, src)
	_, err := s.Checkout(t.Context(), src, two, dir)
	wantFault(t, err, fault.Exhausted, two[:7], dir, "make room in the state directory")
	wantTree(t, dir, map[string]string{"a": "1", "b": "2"})
	if got := o.run(dir, "status", "--porcelain"); got != "" {
		t.Errorf("git status: %s", got)
	}
	remove(t, disk, "filler")
	checkout(t, s, src, two, dir)
	if got := tree(t, dir); got["a"] != "now 2" || len(got["big"]) != 350<<10 || len(got) != 2 {
		t.Errorf("after there was room: %d files", len(got))
	}
}

// When the mirror has no room to grow, the fault says so, and a fetch works again later.
func TestDiskFullAtTheFetch(t *testing.T) {
	for name, serve := range map[string]func(o *origin) string{
		"local": func(o *origin) string { return o.bare },
		"http":  func(o *origin) string { return o.serve("").URL + "/origin.git" },
	} {
		t.Run(name, func(t *testing.T) {
			disk := smallDisk(t)
			o, s := newOrigin(t), newSyncer(t, func(c *Config) { c.Mirrors = filepath.Join(disk, "mirrors") })
			src := Source{URL: serve(o), Branch: "main"}
			one := o.push("small", map[string]string{"a": "1"})
			fetch(t, s, src)
			if err := os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 200<<10), 0o644); err != nil {
				t.Fatal(err)
			}
			two := o.push("big", map[string]string{"big": noise(450 << 10)})
			_, _, err := s.Fetch(t.Context(), src)
			wantFault(t, err, fault.Exhausted, "no room on the disk for the mirror of "+src.URL)
			checkout(t, s, src, one, filepath.Join(t.TempDir(), "c")) // what was there still is
			remove(t, disk, "filler")
			if rev, report := fetch(t, s, src); rev.Commit != two || report.Rebuilt {
				t.Errorf("%+v %+v", rev, report)
			}
		})
	}
}
