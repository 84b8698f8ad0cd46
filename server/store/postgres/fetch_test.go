package postgres

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ulikunitz/xz"

	"ordain.dev/ordain/internal/fault"
)

// jarOf packs files as the repository has them: a jar that holds a .txz.
func jarOf(t *testing.T, files ...tar.Header) []byte {
	t.Helper()
	var txz, jar bytes.Buffer
	xw, err := xz.NewWriter(&txz)
	must(t, err)
	tw := tar.NewWriter(xw)
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) 17.5'\n"
	for _, h := range files {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(script))
		}
		must(t, tw.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := tw.Write([]byte(script))
			must(t, err)
		}
	}
	must(t, tw.Close())
	must(t, xw.Close())
	zw := zip.NewWriter(&jar)
	w, err := zw.Create("postgres-linux-x86_64.txz")
	must(t, err)
	_, err = w.Write(txz.Bytes())
	must(t, err)
	must(t, zw.Close())
	return jar.Bytes()
}

func program(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}
}

// repository serves a jar with its checksum in one kind of file.
func repository(t *testing.T, jar []byte, kind, sum string) (address string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, ".jar"):
			asked.Add(1)
			_, _ = w.Write(jar) // the client notices
		case strings.HasSuffix(r.URL.Path, ".jar."+kind):
			_, _ = w.Write([]byte(sum))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestProgramsAreFetchedOnceAndChecked(t *testing.T) {
	t.Parallel()
	good := jarOf(
		t,
		program("./bin/initdb"),
		program("./bin/postgres"),
		tar.Header{Name: "lib/", Typeflag: tar.TypeDir, Mode: 0o700},
		tar.Header{Name: "lib/libpq.so", Typeflag: tar.TypeSymlink, Linkname: "libpq.so.5"},
	)
	sum1, sum256 := sha1.Sum(good), sha256.Sum256(good)
	for kind, sum := range map[string]string{"sha1": hex.EncodeToString(sum1[:]), "sha256": hex.EncodeToString(sum256[:]) + "  name.jar\n"} {
		cfg := configIn(t.TempDir())
		var asked *atomic.Int32
		cfg.Repository, asked = repository(t, good, kind, sum)
		for range 2 {
			dir, err := fetch(t.Context(), cfg, 0)
			must(t, err)
			p, err := inspect(t.Context(), dir)
			if err != nil || p.major != 17 {
				t.Fatalf("%s: %v, %v", kind, p, err)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("%s: fetched %d times", kind, asked.Load())
		}
		if left, err := filepath.Glob(filepath.Join(cfg.CacheDir, ".fetch-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

func TestArchivesThatAreNotWhatTheySeem(t *testing.T) {
	t.Parallel()
	sumOf := func(b []byte) string { s := sha1.Sum(b); return hex.EncodeToString(s[:]) }
	outside := jarOf(t, program("../evil"))
	link := jarOf(t, tar.Header{Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, program("bin/postgres"))
	for name, test := range map[string]struct {
		jar  []byte
		sum  string
		want string
		kind fault.Kind
	}{
		"damaged on the way": {[]byte("half a jar"), sumOf(outside), "checksum", fault.Unavailable},
		"no checksum":        {outside, "", "checksum is empty", fault.Unavailable},
		"no archive":         {[]byte("text"), sumOf([]byte("text")), "zip", fault.Internal},
		"leads outside":      {outside, sumOf(outside), "leads out", fault.Internal},
		"a link outside":     {link, sumOf(link), "leads out", fault.Internal},
	} {
		dir := t.TempDir()
		cfg := configIn(dir)
		cfg.Repository, _ = repository(t, test.jar, "sha1", test.sum)
		_, err := fetch(t.Context(), cfg, 0)
		if !fault.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if entries, err := os.ReadDir(cfg.CacheDir); err != nil || len(entries) > 0 {
			t.Errorf("%s: left behind: %v, %v", name, entries, err)
		}
	}
	cfg := configIn(t.TempDir())
	cfg.Repository = "http://127.0.0.1:1"
	if _, err := fetch(t.Context(), cfg, 0); !fault.Is(err, fault.Unavailable) ||
		!strings.Contains(err.Error(), "install PostgreSQL") {
		t.Errorf("a repository that is away: %v", err)
	}
}
