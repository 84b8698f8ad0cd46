package racedetector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Main runs the tests of a binary that starts itself as other programs. It is
// for TestMain. A data race that one of these finds makes the binary fail,
// whatever became of its output and of its exit status.
func Main(m interface{ Run() int }) (code int) {
	if !On {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "ordain-races-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "no folder for reports of data races:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	reports.dir = dir
	// Of this process the detector has read its options already: here it goes on
	// writing to standard error.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" log_path="+filepath.Join(dir, "race"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code = m.Run()
	for _, text := range reports.take() {
		fmt.Fprintf(os.Stderr, "a process that these tests started found a data race:\n%s\n", text)
		code = max(code, 1)
	}
	return code
}

// Check fails a test when a process that this binary started has found a data
// race since Check was last called. Tests that run in parallel are told of each
// other's.
func Check(t testing.TB) {
	t.Helper()
	for _, text := range reports.take() {
		t.Errorf("a process that was started found a data race:\n%s", text)
	}
}

var reports folder

// folder is where the detector writes a file for each process that finds something.
type folder struct {
	mu  sync.Mutex
	dir string // empty: there are none
	n   map[string]int64
}

// take gives the reports that were written since it was last called.
func (f *folder) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(f.dir, "race.*"))
	if err != nil {
		return []string{err.Error()}
	}
	var texts []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			texts = append(texts, err.Error())
			continue
		}
		if f.n == nil {
			f.n = map[string]int64{}
		}
		if seen := f.n[file]; int64(len(text)) > seen {
			f.n[file] = int64(len(text))
			texts = append(texts, string(text[seen:]))
		}
	}
	return texts
}
