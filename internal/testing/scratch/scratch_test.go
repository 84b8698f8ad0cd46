package scratch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// suite is what TestMain would run.
type suite func() int

func (s suite) Run() int { return s() }

// TestTheFolderGoesWithItsSuite runs a suite that leaves files behind.
func TestTheFolderGoesWithItsSuite(t *testing.T) {
	if Parent() == "" {
		t.Skip("this machine has no folder in memory with enough room")
	}
	t.Setenv("TMPDIR", "")
	var dir string
	code := InMemory(suite(func() int {
		dir = os.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o600); err != nil {
			t.Error(err)
		}
		return 3
	})).Run()
	if code != 3 || !strings.HasPrefix(dir, Parent()) {
		t.Errorf("the suite ran in %s and ended with %d, want a folder below %s and 3", dir, code, Parent())
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

// TestAPlaceThatWasChosenStays has a TMPDIR, such as a process that another test started.
func TestAPlaceThatWasChosenStays(t *testing.T) {
	chosen := t.TempDir()
	t.Setenv("TMPDIR", chosen)
	InMemory(suite(func() int {
		if got := os.TempDir(); got != chosen {
			t.Errorf("files go to %s, want %s", got, chosen)
		}
		return 0
	})).Run()
}

// TestTheFolderGoesWithAKilledProcess ends a process by force, after which nothing of its own can tidy up.
func TestTheFolderGoesWithAKilledProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperThatIsKilled$")
	cmd.Env = append(os.Environ(), "ORDAIN_SCRATCH_HELPER="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // its janitor waits now
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	looks := time.NewTicker(10 * time.Millisecond)
	defer looks.Stop()
	for deadline := time.After(time.Minute); ; {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		select {
		case <-looks.C:
		case <-deadline:
			t.Fatalf("%s is still there a minute after its process was killed", dir)
		}
	}
}

// TestHelperThatIsKilled is the process of TestTheFolderGoesWithAKilledProcess.
func TestHelperThatIsKilled(t *testing.T) {
	dir := os.Getenv("ORDAIN_SCRATCH_HELPER")
	if dir == "" {
		t.Skip("a helper of another test")
	}
	if _, err := removedAfter(dir); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("x")
	select {}
}
