package racedetector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Main runs the tests of a binary that starts itself as other processes; call it
// from TestMain. A data race in one of these processes makes the binary fail, even
// if no test looks at the output or exit status of the process.
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
	// This process has read the options of the detector already, and goes on
	// writing its reports to standard error.
	options := strings.TrimSpace(os.Getenv("GORACE") + " log_path=" + filepath.Join(dir, "race"))
	if err := os.Setenv("GORACE", options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code = m.Run()
	for _, text := range reports.take() {
		fmt.Fprintf(os.Stderr, "a process that these tests started has a data race:\n%s\n", text)
		code = max(code, 1)
	}
	return code
}

// Folder returns the folder that processes of this binary write their reports to; empty without the detector. A process
// that is confined has to be allowed to write there.
func Folder() string { return reports.dir }

// Check fails a test if the detector has found a data race in a process of this
// binary since the last call of Check. A test that runs in parallel with others
// may get their reports.
func Check(t testing.TB) {
	t.Helper()
	for _, text := range reports.take() {
		t.Errorf("a process that this binary started has a data race:\n%s", text)
	}
}

var reports folder

// folder is the folder where the detector writes a file for each process with a data race.
type folder struct {
	mu  sync.Mutex
	dir string           // empty without the detector
	n   map[string]int64 // bytes that take has returned, by file
}

// take returns the reports that were written since the last call.
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
