package venv

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// wheel builds a package of one module that has the version of the package, and of some
// other files.
func wheel(t *testing.T, name, version string, others ...[2]string) []byte {
	t.Helper()
	info := fmt.Sprintf("%s-%s.dist-info/", name, version)
	var b bytes.Buffer
	var record strings.Builder
	z := zip.NewWriter(&b)
	for _, f := range append(others, [][2]string{
		{name + "/__init__.py", fmt.Sprintf("version = %q\n", version)},
		{info + "METADATA", fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", ""},
	}...) {
		text := f[1]
		if f[0] == info+"RECORD" {
			text = record.String() + f[0] + ",,\n"
		}
		sum := sha256.Sum256([]byte(text))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f[0], base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
		w, err := z.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// index serves packages ("name version") as a package index does, and returns its address.
func index(t *testing.T, packages ...string) string {
	t.Helper()
	files := map[string][]byte{}
	for _, p := range packages {
		name, version, _ := strings.Cut(p, " ")
		files[fmt.Sprintf("%s-%s-py3-none-any.whl", name, version)] = wheel(t, name, version)
	}
	return indexOf(t, files)
}

// indexOf serves files of packages.
func indexOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	pages := map[string]string{}
	for file := range files {
		name, _, _ := strings.Cut(file, "-")
		pages[name] += fmt.Sprintf("<a href=\"/files/%s\">%s</a>\n", file, file)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if file, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok && files[file] != nil {
			_, _ = w.Write(files[file])
			return
		}
		page := pages[strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple/"), "/")]
		if page == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html><html><body>" + page + "</body></html>"))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/simple/"
}

// Packages come from the two indexes that a project names. Pre-releases and the
// machine's index are used only when the project says so.
func TestPackagesOfTwoIndexes(t *testing.T) {
	first := index(t, "ordainalpha 1.0", "ordainalpha 2.0rc1")
	second := index(t, "ordainbeta 3.0")
	machine := index(t, "ordaingamma 4.0")
	c := shared(t)
	m := maker(t, c)
	t.Setenv("PIP_INDEX_URL", machine)
	t.Setenv("UV_INDEX_URL", machine)
	onMachine := maker(t, c)
	yes := true
	both := intent.PipConfig{IndexURL: first, ExtraIndexURL: []string{second}}
	pre := both
	pre.Pre = &yes
	system := intent.PipConfig{UseSystemConfig: true, ExtraIndexURL: []string{second}}
	alphaBeta, gammaBeta := []string{"ordainalpha", "ordainbeta"}, []string{"ordaingamma", "ordainbeta"}
	for name, tc := range map[string]struct {
		maker *Maker
		pip   intent.PipConfig
		wants []string
		gets  string // the installed packages, or a minus and the package that cannot be found
	}{
		"both":                       {m, both, alphaBeta, "ordainalpha 1.0,ordainbeta 3.0"},
		"pre-releases":               {m, pre, alphaBeta, "ordainalpha 2.0rc1,ordainbeta 3.0"},
		"without the second":         {m, intent.PipConfig{IndexURL: first}, []string{"ordainbeta"}, "-ordainbeta"},
		"the machine is not asked":   {onMachine, both, []string{"ordaingamma"}, "-ordaingamma"},
		"the machine and the second": {onMachine, system, gammaBeta, "ordaingamma 4.0,ordainbeta 3.0"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := tc.maker.Ensure(
				t.Context(),
				Spec{Dir: filepath.Join(t.TempDir(), "venv"), Requirements: tc.wants, Pip: tc.pip},
			)
			if missing, none := strings.CutPrefix(tc.gets, "-"); none {
				if err == nil || !strings.Contains(err.Error()+report(r), missing) {
					t.Fatalf("%v\n%s", err, report(r))
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, report(r))
			}
			for _, want := range strings.Split(tc.gets, ",") {
				name, version, _ := strings.Cut(want, " ")
				if got := python(t, r, fmt.Sprintf("print(__import__(%q).version)", name)); got != version {
					t.Errorf("%s is %s, want %s", name, got, version)
				}
			}
		})
	}
}

// What one owner installed from an index with a password, nobody else gets without it. The other one names the same
// index, and a package of the same name and version in an index of their own, so that the versions can be chosen.
func TestPackagesOfAPrivateIndexStayPrivate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "s3cr3t" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Cache-Control", "max-age=3600")
		const file = "ordainprivate-1.0-py3-none-any.whl"
		switch r.URL.Path {
		case "/" + file:
			_, _ = w.Write(wheel(t, "ordainprivate", "1.0", [2]string{"ordainprivate/secret.py", ""}))
		case "/simple/ordainprivate/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, "<a href=\"/%s\">%s</a>", file, file)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	withPassword := strings.Replace(server.URL, "http://", "http://bob:s3cr3t@", 1) + "/simple/"
	m := maker(t, shared(t))
	install := func(owner string, pip intent.PipConfig) (secret bool) {
		r := ensure(t, m, Spec{
			Dir: filepath.Join(t.TempDir(), "venv"), Owner: owner, Pip: pip,
			Requirements: []string{"ordainprivate==1.0"},
		})
		found, err := filepath.Glob(filepath.Join(r.SitePackages, "ordainprivate", "secret.py"))
		return err == nil && len(found) == 1
	}
	if !install("bob", intent.PipConfig{IndexURL: withPassword}) {
		t.Fatal("its owner does not get the package")
	}
	own := index(t, "ordainprivate 1.0")
	if install("alice", intent.PipConfig{IndexURL: own, ExtraIndexURL: []string{server.URL + "/simple/"}}) {
		t.Error("somebody else gets the package without the password")
	}
}
