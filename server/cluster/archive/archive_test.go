package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/archive"
)

// item is an entry of an archive that a test makes.
type item struct {
	name, content, link string
	mode                int64
	kind                byte // of tar; 0: file, or folder if the name ends with a slash
}

func makeTar(t testing.TB, items ...item) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, i := range items {
		h := &tar.Header{Name: i.name, Mode: i.mode, Size: int64(len(i.content)), Typeflag: i.kind, Linkname: i.link}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
			if strings.HasSuffix(i.name, "/") {
				h.Typeflag = tar.TypeDir
			}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, i.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func pack(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func makeZip(t testing.TB, items ...item) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, i := range items {
		h := &zip.FileHeader{Name: i.name, Method: zip.Deflate}
		mode := fs.FileMode(0o644)
		if i.mode != 0 {
			mode = fs.FileMode(i.mode)
		}
		content := i.content
		switch {
		case i.link != "":
			mode, content = fs.ModeSymlink|0o777, i.link
		case strings.HasSuffix(i.name, "/"):
			mode = fs.ModeDir | 0o755
		case i.kind == tar.TypeFifo:
			mode |= fs.ModeNamedPipe
		}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Each format of a good archive gives the same folder: files with their content, programs that can be run, links.
func TestUnpack(t *testing.T) {
	items := []item{
		{name: "books/"},
		{name: "books/recipes/default.rb", content: "package 'ntp'"},
		{name: "books/run.sh", content: "#!/bin/sh", mode: 0o6755},
		{name: "books/recipes/up", link: "../run.sh", kind: tar.TypeSymlink},
	}
	for name, content := range map[string][]byte{
		"tar": makeTar(t, items...), "tar.gz": pack(t, makeTar(t, items...)), "zip": makeZip(t, items...),
		"tar with dots": makeTar(t, item{name: "./"}, item{name: "./books/"},
			item{name: "./books/recipes/default.rb", content: "package 'ntp'"},
			item{name: "./books/run.sh", content: "#!/bin/sh", mode: 0o755},
			item{name: "./books/recipes/up", link: "../run.sh", kind: tar.TypeSymlink}),
	} {
		t.Run(name, func(t *testing.T) {
			if err := archive.Check(bytes.NewReader(content), "books"); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := archive.Unpack(bytes.NewReader(content), "books", dir); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "books/recipes/default.rb"))
			if err != nil || string(text) != "package 'ntp'" {
				t.Fatalf("%q, %v", text, err)
			}
			info, err := os.Stat(filepath.Join(dir, "books/run.sh"))
			if err != nil || info.Mode() != 0o755 {
				t.Fatalf("%v, %v", info.Mode(), err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "books/recipes/up")); err != nil ||
				string(text) != "#!/bin/sh" {
				t.Fatalf("%q, %v", text, err)
			}
		})
	}
}

// Archives that want to write elsewhere, or make what is neither file, folder nor link, are refused by Check and by
// Unpack alike, and Unpack leaves nothing outside of its folder.
func TestHostile(t *testing.T) {
	for name, items := range map[string][]item{
		"goes up":                 {{name: "books/../../evil", content: "x"}},
		"is absolute":             {{name: "/evil", content: "x"}},
		"backslashes":             {{name: `books\..\..\evil`, content: "x"}},
		"another top":             {{name: "evil/x", content: "x"}},
		"two tops":                {{name: "books/x", content: "x"}, {name: "evil/x", content: "x"}},
		"file at the top":         {{name: "books", content: "x"}},
		"nothing":                 {},
		"link to the system":      {{name: "books/x", link: "/etc/passwd", kind: tar.TypeSymlink}},
		"link that goes up":       {{name: "books/x", link: "../evil", kind: tar.TypeSymlink}},
		"link that goes down, up": {{name: "books/a/b/x", link: "d/../../y", kind: tar.TypeSymlink}},
		"file through a link": {
			{name: "books/x", link: ".", kind: tar.TypeSymlink}, {name: "books/x/y", content: "x"},
		},
		"link over a folder": {
			{name: "books/x/y", content: "x"}, {name: "books/x", link: ".", kind: tar.TypeSymlink},
		},
		"twice":                     {{name: "books/x", content: "x"}, {name: "books/./x", content: "y"}},
		"pipe":                      {{name: "books/x", kind: tar.TypeFifo}},
		"name with a null byte":     {{name: "books/x\x00y", content: "x"}},
		"name of another character": {{name: "books/\xff", content: "x"}},
	} {
		for format, content := range map[string][]byte{
			"tar": makeTarRaw(t, items), "zip": makeZip(t, items...),
		} {
			if content == nil {
				continue
			}
			t.Run(name+" "+format, func(t *testing.T) {
				err := archive.Check(bytes.NewReader(content), "books")
				if err == nil {
					t.Fatal("Check found nothing")
				}
				if !fault.Is(err, fault.Invalid) {
					t.Errorf("%v is a fault of the kind %s", err, fault.KindOf(err))
				}
				top := t.TempDir()
				dir := filepath.Join(top, "a", "b")
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := archive.Unpack(bytes.NewReader(content), "books", dir); err == nil {
					t.Error("Unpack found nothing")
				}
				for _, elsewhere := range []string{top, filepath.Join(top, "a")} {
					found, _ := os.ReadDir(elsewhere)
					if len(found) != 1 {
						t.Errorf("%s has %v", elsewhere, found)
					}
				}
			})
		}
	}
	kinds := map[string]byte{"hard link": tar.TypeLink, "device": tar.TypeBlock, "terminal": tar.TypeChar}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			content := makeTar(t, item{name: "books/x", link: "books/y", kind: kind})
			if err := archive.Check(bytes.NewReader(content), "books"); !fault.Is(err, fault.Invalid) {
				t.Fatal(err)
			}
		})
	}
}

// makeTarRaw returns nil for items that the writer of tar files refuses.
func makeTarRaw(t *testing.T, items []item) []byte {
	for _, i := range items {
		if strings.Contains(i.name, "\x00") {
			return nil
		}
	}
	return makeTar(t, items...)
}

// Bombs are refused when they reach a limit, and not when the disk is full.
func TestLimits(t *testing.T) {
	limits := archive.Limits{Entries: 10, Unpacked: 100_000, Packed: 1 << 20}
	many := make([]item, 11)
	for i := range many {
		many[i] = item{name: "books/" + strings.Repeat("x", i+1)}
	}
	big := item{name: "books/big", content: strings.Repeat("0", 200_000)}
	padded := append(makeTar(t, item{name: "books/x"}), make([]byte, 20<<20)...)
	for name, content := range map[string][]byte{
		"many in a tar": makeTar(t, many...), "many in a zip": makeZip(t, many...),
		"big in a tar": makeTar(t, big), "big in a tar.gz": pack(t, makeTar(t, big)), "big in a zip": makeZip(t, big),
		"large itself": makeTar(t, item{name: "books/x", content: strings.Repeat("0", 2<<20)}),
	} {
		t.Run(name, func(t *testing.T) {
			if err := limits.Check(bytes.NewReader(content), "books"); !fault.Is(err, fault.Exhausted) {
				t.Fatal(err)
			}
		})
	}
	t.Run("much behind the end", func(t *testing.T) {
		if err := limits.Check(bytes.NewReader(pack(t, padded)), "books"); err == nil {
			t.Fatal("Check found nothing")
		}
	})
}

// A broken upload is recognized.
func TestDamaged(t *testing.T) {
	good := pack(t, makeTar(t, item{name: "books/x", content: strings.Repeat("abc", 1000)}))
	if err := archive.Check(bytes.NewReader(good[:len(good)-6]), "books"); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	whole := makeZip(t, item{name: "books/x", content: "abc"})
	if err := archive.Check(bytes.NewReader(whole[:len(whole)-6]), "books"); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	if err := archive.Check(strings.NewReader("plain text"), "books"); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// Whatever the bytes are, unpacking them writes below the folder only, and what Check accepts can be unpacked.
func FuzzUnpack(f *testing.F) {
	f.Add(makeTar(f, item{name: "books/x", content: "x"}, item{name: "books/l", link: "x", kind: tar.TypeSymlink}))
	f.Add(makeZip(f, item{name: "books/x", content: "x"}, item{name: "books/l", link: "x"}))
	f.Add(pack(f, makeTar(f, item{name: "books/x", content: "x"})))
	limits := archive.Limits{Entries: 50, Unpacked: 1 << 20, Packed: 1 << 20}
	f.Fuzz(func(t *testing.T, content []byte) {
		top := t.TempDir()
		dir := filepath.Join(top, "a")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		checked, unpacked := limits.Check(bytes.NewReader(content), "books"),
			limits.Unpack(bytes.NewReader(content), "books", dir)
		if (checked == nil) != (unpacked == nil) {
			t.Fatalf("Check: %v, Unpack: %v", checked, unpacked)
		}
		if found, _ := os.ReadDir(top); len(found) != 1 {
			t.Fatalf("there are %v", found)
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			real, err := filepath.EvalSymlinks(path)
			if err == nil && !strings.HasPrefix(real, dir) {
				t.Fatalf("%s leads to %s", path, real)
			}
			return nil
		})
	})
}
