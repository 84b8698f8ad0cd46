package runtime

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Unpack removes bytecode that was not used for a month and keeps the rest. It does
// not look again within a day.
func TestUnusedBytecodeGoes(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	dir := filepath.Join(cache, "__pycache__")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	put := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	there := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	old, used := put("old.pyc", 31*24*time.Hour), put("used.pyc", 20*24*time.Hour)
	if _, err := Unpack(cache); err != nil {
		t.Fatal(err)
	}
	if there(old) || !there(used) {
		t.Errorf("after the first look: the old one is there: %v, the used one: %v", there(old), there(used))
	}
	old = put("older.pyc", 60*24*time.Hour)
	pruneBytecode(dir, now.Add(23*time.Hour))
	if !there(old) {
		t.Error("old bytecode was removed twice within a day")
	}
	pruneBytecode(dir, now.Add(25*time.Hour))
	if there(old) || !there(used) {
		t.Error("a day later the old bytecode is still there, or the used one is gone")
	}
}
