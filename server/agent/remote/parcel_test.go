package remote

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/layout"
)

// Packages that were fetched for agents fill the disk with every change of requirements. Those that
// nothing was packed from for long are removed, also what a killed server left unfinished; the others stay.
func TestUnusedPackagesAreRemoved(t *testing.T) {
	where, err := layout.New(layout.Config{StateDir: t.TempDir(), LogDir: t.TempDir(), CacheDir: t.TempDir()})
	must(t, err)
	env := uuid.New()
	s := parcels{known: map[string]*parcel{}, c: Config{
		Environment: env, Layout: where, Logger: slog.New(slog.DiscardHandler), WheelRetention: time.Hour,
	}}
	s.clean(time.Now()) // there is no folder yet
	dir := where.Environment(env).WheelFolders()
	now := time.Now().Add(foldersInterval)
	for name, age := range map[string]time.Duration{
		"used": 50 * time.Minute, "old": 2 * time.Hour, "old.new-1": 2 * time.Hour, "young.new-2": time.Minute,
	} {
		folder := filepath.Join(dir, name)
		must(t, os.MkdirAll(folder, 0o750))
		must(t, os.WriteFile(filepath.Join(folder, "a.whl"), []byte("wheel"), 0o640))
		must(t, os.Chtimes(folder, now.Add(-age), now.Add(-age)))
	}
	s.clean(now)
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 2 || entries[0].Name() != "used" || entries[1].Name() != "young.new-2" {
		t.Errorf("these packages are left: %v", entries)
	}
}
