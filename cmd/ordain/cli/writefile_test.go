package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file is replaced whole and keeps its mode, and links still lead to it. A pipe, which
// stands for /dev/null and /dev/stdout, is written into and stays a pipe. No temporary
// files are left.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	hello := func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("a longer text"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(link, hello); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "hello" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode() != 0o640 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // a writer too, so that neither end waits
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := writeFile(pipe, hello); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "hello" {
		t.Errorf("the pipe gave %q, %v", got, err)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe became %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".ordain-*")); len(left) > 0 {
		t.Error("left behind:", left)
	}
	if err := writeFile(filepath.Join(dir, "no", "file"), hello); err == nil {
		t.Error("written into a folder that is not there")
	}
}

// The result file exists in a folder in which no files can be created.
func TestWriteFileInAReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("for root every folder takes files")
	}
	dir := t.TempDir()
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	path := filepath.Join(dir, "result")
	if err := errors.Join(os.WriteFile(path, []byte("something longer"), 0o644), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	err := writeFile(path, func(w io.Writer) error { _, err := io.WriteString(w, "short"); return err })
	if text, _ := os.ReadFile(path); err != nil || string(text) != "short" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}
