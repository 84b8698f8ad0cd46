package runtime

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Bytecode that nothing used for a month goes when the runtime is unpacked, and
// what was used stays. Whoever comes within a day of the last look does not
// look again.
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
		t.Error("it was looked for twice within a day")
	}
	pruneBytecode(dir, now.Add(25*time.Hour))
	if there(old) || !there(used) {
		t.Error("a day later it was not looked for, or too much went")
	}
}
