package secret

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

func openKey(t *testing.T, path string) *Key {
	t.Helper()
	k, err := OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A server can open a sealed token after a restart. A thief who has only the
// database, or who moves the row to another environment, cannot.
func TestSealedSecretOpensOnlyAtItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	sealed, err := openKey(t, path).Seal([]byte("s3cr3t-token"), "env-1/git-password")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("s3cr3t")) {
		t.Fatal("the sealed text shows the secret")
	}
	again := openKey(t, path)
	plain, err := again.Open(sealed, "env-1/git-password")
	if err != nil || string(plain) != "s3cr3t-token" {
		t.Fatalf("open after a restart: %q, %v", plain, err)
	}
	if _, err := again.Open(sealed, "env-2/git-password"); err == nil {
		t.Error("it opened in another environment")
	}
	if _, err := openKey(t, filepath.Join(t.TempDir(), "key")).Open(sealed, "env-1/git-password"); err == nil ||
		!strings.Contains(err.Error(), "key file replaced") {
		t.Errorf("with another key: %v", err)
	}
	for i := range sealed {
		damaged := bytes.Clone(sealed)
		damaged[i] ^= 1
		if _, err := again.Open(damaged, "env-1/git-password"); err == nil {
			t.Fatalf("it opened with byte %d changed", i)
		}
	}
	for n := range sealed {
		if _, err := again.Open(sealed[:n], "env-1/git-password"); err == nil {
			t.Fatalf("it opened cut to %d bytes", n)
		}
	}
	twice, _ := again.Seal([]byte("s3cr3t-token"), "env-1/git-password")
	if bytes.Equal(sealed, twice) {
		t.Error("the same secret sealed twice looks the same")
	}
}

// Several servers that start at once in a new state directory end up with one key.
func TestServersStartingAtOnceShareOneKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	keys := make([]*Key, 16)
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() { keys[i], _ = OpenKey(path) })
	}
	group.Wait()
	for i, k := range keys {
		if k == nil {
			t.Fatalf("opener %d failed", i)
		}
		sealed, _ := keys[0].Seal([]byte("x"), "c")
		if _, err := k.Open(sealed, "c"); err != nil {
			t.Fatalf("opener %d has another key", i)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("temporary files are left: %v", entries)
	}
}

func TestBadKeyFiles(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	openKey(t, good)
	content, _ := os.ReadFile(good)
	tests := []struct {
		name    string
		content string
		mode    os.FileMode
		kind    fault.Kind
		want    []string
	}{
		{"world-readable", string(content), 0o644, fault.Forbidden, []string{"mode 0644", "chmod 600"}},
		{"group-readable", string(content), 0o640, fault.Forbidden, []string{"mode 0640", "chmod 600"}},
		{"empty", "", 0o600, fault.Invalid, []string{"does not hold a key", "backup"}},
		{"other text", "hello\n", 0o600, fault.Invalid, []string{"does not hold a key"}},
		{"cut", string(content[:30]), 0o600, fault.Invalid, []string{"does not hold a key"}},
		{"too long", string(content) + string(content), 0o600, fault.Invalid, []string{"does not hold a key"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			_, err := OpenKey(path)
			if !fault.Is(err, tt.kind) {
				t.Fatalf("got %v, want kind %s", err, tt.kind)
			}
			for _, w := range append(tt.want, path) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			if len(tt.content) > 20 && strings.Contains(err.Error(), tt.content[15:30]) {
				t.Error("the message shows the key")
			}
			if left, _ := os.ReadFile(path); string(left) != tt.content {
				t.Error("the file was changed")
			}
		})
	}
	if _, err := OpenKey(filepath.Join(t.TempDir(), "no", "key")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := OpenKey(t.TempDir()); err == nil {
		t.Error("a directory was accepted as a key file")
	}
}
