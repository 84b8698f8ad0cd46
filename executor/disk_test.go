package executor

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// When more is on disk than the budget allows, unused folders are removed, the
// least recently used first and no more than needed. Folders of running
// processes stay, whatever the budget.
func TestDiskBudget(t *testing.T) {
	b := newBench(t, nil)
	e := b.paths.Environment(b.env)
	blues := []intent.Blueprint{b.variant(0), b.variant(1), b.variant(2)}
	var dirs []string
	for n, blue := range blues {
		blues[n].Constraints = []string{"jinja2<" + string(rune('4'+n))} // another virtual environment each
		blue = blues[n]
		expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusDeployed)
		dirs = append(dirs, e.Venv(blue.VenvHash()))
		if err := os.WriteFile(filepath.Join(dirs[n], "ballast"), make([]byte, 4<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := func() (out string) {
		for n, dir := range dirs {
			if _, err := os.Stat(dir); err == nil {
				out += string(rune('0' + n))
			}
		}
		return out
	}
	clean := func(budget uint64) {
		t.Helper()
		b.c.DiskMax, b.grown = budget, true
		if err := b.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	clean(1 << 20)
	if there() != "012" {
		t.Fatalf("what processes run on was removed; left: %s\n%s", there(), b.log)
	}
	b.mu.Lock()
	for _, n := range []int{0, 1} {
		b.retire(b.executors[blues[n].Hash()].current)
	}
	b.mu.Unlock()
	b.until("two end", func() bool { return b.processes == 1 })
	for n, age := range []time.Duration{time.Minute, 2 * time.Minute} { // the second is the one unused longest
		marker := filepath.Join(dirs[n], ".ordain-venv.json")
		at := time.Now().Add(-age)
		if err := os.Chtimes(marker, at, at); err != nil {
			t.Fatal(err)
		}
	}
	clean(10 << 20)
	if there() != "02" {
		t.Errorf("left: %s; want the one unused longest to go, and no more\n%s", there(), b.log)
	}
	clean(1 << 20)
	if there() != "2" || !strings.Contains(b.log.String(), "larger than [agent] executor-disk-max") {
		t.Errorf("left: %s", there())
	}
	expect(t, b.Run(t.Context(), task(blues[1], "host", "a", nil)), intent.StatusDeployed)
}

// In the report, a file that two virtual environments share counts in the size
// of both, and once in the sum.
func TestReport(t *testing.T) {
	b := newBench(t, nil)
	e := b.paths.Environment(b.env)
	one, two := b.variant(0), b.variant(1)
	two.Constraints = []string{"jinja2<4"} // another virtual environment
	for _, blue := range []intent.Blueprint{one, two} {
		expect(t, b.Run(t.Context(), task(blue, "host", "a", nil)), intent.StatusDeployed)
	}
	shared := filepath.Join(e.Venv(one.VenvHash()), "ballast")
	if err := os.WriteFile(shared, bytes.Repeat([]byte("x"), 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(shared, filepath.Join(e.Venv(two.VenvHash()), "ballast")); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.retire(b.executors[two.Hash()].current)
	b.mu.Unlock()
	b.until("one ends", func() bool { return b.processes == 1 })
	r := b.Report()
	if len(r.Processes) != 1 {
		t.Fatalf("processes: %+v", r.Processes)
	}
	p := r.Processes[0]
	if p.Blueprint != one.Hash() || p.Venv != one.VenvHash() || p.Agents != 1 || p.Running != 0 ||
		p.IdleSince.IsZero() ||
		p.Ending ||
		len(p.Modules) == 0 {
		t.Errorf("the process: %+v", p)
	}
	var sum, ballast int64 = 0, 4 << 20
	inUse := map[string]bool{}
	for _, f := range r.Folders {
		sum += f.Size
		inUse[f.Kind+" "+f.Hash] = f.InUse
		if f.Alone > f.Size || f.Size == 0 || f.LastUsed.IsZero() {
			t.Errorf("the folder: %+v", f)
		}
		if f.Kind == "venv" && (f.Size < ballast || f.Size-f.Alone < ballast) {
			t.Errorf("the environment has %d bytes, %d of them alone", f.Size, f.Alone)
		}
	}
	want := map[string]bool{
		"venv " + one.VenvHash(): true,
		"code " + one.Hash():     true,
		"venv " + two.VenvHash(): false,
		"code " + two.Hash():     false,
	}
	if !maps.Equal(inUse, want) {
		t.Errorf("in use: %v\nwant %v", inUse, want)
	}
	if r.Disk > sum-ballast || r.Disk < ballast {
		t.Errorf("all together take %d bytes, the sizes add up to %d", r.Disk, sum)
	}
}

// Processes of handlers that outlived a killed server are ended by the next
// server of the environment. It ends no others.
func TestProcessesOfAKilledServer(t *testing.T) {
	b := newBench(t, nil)
	left := exec.Command("sleep", "3600")
	left.Env = []string{"ORDAIN_EXECUTOR=" + b.mark() + "of-another-time"}
	other := exec.Command("sleep", "3600")
	other.Env = []string{"ORDAIN_EXECUTOR=0123-of-another-environment"}
	for _, cmd := range []*exec.Cmd{left, other} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	second, err := NewManager(b.c)
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Error("a process of another environment was ended:", err)
	}
	_ = other.Wait()
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
