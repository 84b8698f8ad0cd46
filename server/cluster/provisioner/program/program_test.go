package program_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/program"
	"ordain.dev/ordain/server/cluster/task"
)

// cell confines plug-ins as a server does it on this machine.
func cell(t *testing.T) *isolation.Cell {
	support := isolation.Detect()
	if support.None() {
		t.Skip("this kernel cannot confine anything")
	}
	c := isolation.Config{Support: support}
	if support.Users && isolation.Mapped(2_000_000_000, 1) {
		c.FirstUser = 2_000_000_000
	}
	return c.Cell(0)
}

// modes runs a test with plug-ins that are confined, and with others that are not.
func modes(t *testing.T, f func(*testing.T, program.Config)) {
	t.Run("confined", func(t *testing.T) { f(t, program.Config{Cell: cell(t)}) })
	t.Run("not confined", func(t *testing.T) { f(t, program.Config{}) })
}

// write makes a plug-in of a shell script.
func write(t *testing.T, dir, manifest, script string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, program.ManifestName), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.sh"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

const manifest = `{"name":"test","protocol":1,"program":"main.sh","providertypes":["test"]}`

func open(t *testing.T, c program.Config, script string) *program.Program {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "test")
	write(t, dir, manifest, script)
	p, err := program.Open(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// output keeps what is printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

type files map[string]string

func (f files) Path(_, name string) (string, error) {
	if path, ok := f[name]; ok {
		return path, nil
	}
	return "", errors.New("there is no " + name)
}

func call(t *testing.T, out *output) plugin.Call {
	return plugin.Call{
		Task: task.Task{
			Action:  task.Create,
			Tag:     "the-tag",
			Secrets: []string{"hidden-value"},
		}, Out: out, Files: files{}, Work: t.TempDir(),
	}
}

// run carries out a create.
func run(t *testing.T, p *program.Program) (plugin.Result, string, error) {
	t.Helper()
	out := &output{}
	r, err := p.Create(t.Context(), call(t, out))
	return r, out.String(), err
}

// A plug-in reads its task, prints, and answers: what it prints on standard output and on standard error is output,
// in order, and what it writes to descriptor 3 is the answer.
func TestAnswer(t *testing.T) {
	modes(t, func(t *testing.T, c program.Config) {
		p := open(t, c, `
cat > task
echo one; echo two >&2; echo three
grep -q '"action":"create"' task && grep -q '"protocol":1' task || exit 9
env | grep -q hidden-value && exit 8
tr '\0' ' ' < /proc/$$/cmdline | grep -q hidden-value && exit 7
[ "$ORDAIN_ACTION $ORDAIN_TAG" = "create the-tag" ] || exit 6
[ "$PWD" = "$(sed 's/.*"work":"\([^"]*\)".*/\1/' task)" ] || exit 5
echo '{"status":"done","hostname":"h","addresses":{"access_v4":"10.0.0.1"},
  "facts":{"providerid":"i-1"},"secret":{"password":"x"}}' >&3
`)
		r, out, err := run(t, p)
		if err != nil || r.Hostname != "h" || r.Addresses["access_v4"] != "10.0.0.1" ||
			string(r.Facts["providerid"]) != `"i-1"` || string(r.Secret["password"]) != `"x"` {
			t.Fatalf("%+v, %v, %s", r, err, out)
		}
		if out != "one\ntwo\nthree\n" {
			t.Errorf("it printed %q", out)
		}
	})
}

// Whatever else a plug-in does is a failure that says what is wrong.
func TestBadAnswers(t *testing.T) {
	for script, want := range map[string]string{
		"true":                                 "did not answer",
		"exit 3":                               "exit status 3, and did not answer",
		`echo '{"status":"done"}' >&3; exit 4`: "exit status 4, although",
		`echo '{"status":"done"} {}' >&3`:      "not one JSON object",
		`echo '{"status":' >&3`:                "not one JSON object",
		`echo '{"status":"perhaps"}' >&3`:      `"perhaps"`,
		`echo '{"status":"failed","problem":"no room"}' >&3`: "no room",
		`echo '{"status":"failed"}' >&3`:                     "did not say why",
		`head -c 2000000 /dev/zero | tr '\0' x >&3`:          "KiB",
		`kill -9 $$`: "killed",
		`echo '{"status":"refused","problem":"wrong credential"}' >&3; exit 1`: "wrong credential",
	} {
		_, _, err := run(t, open(t, program.Config{}, script))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", script, err)
		}
		if plugin.IsRefused(err) != strings.Contains(script, "refused") {
			t.Errorf("%s: refused is %t", script, plugin.IsRefused(err))
		}
	}
}

// The time is over: the program is killed, with what it has started, also in the background.
func TestKilled(t *testing.T) {
	modes(t, func(t *testing.T, c program.Config) {
		nap := nap()
		p := open(t, c, strings.ReplaceAll(`
sleep NAP &
sleep NAP | cat &
(sh -c 'sleep NAP & wait') &
wait
`, "NAP", nap))
		ctx, cancel := context.WithCancelCause(t.Context())
		out := &output{}
		ended := make(chan error, 1)
		go func() {
			_, err := p.Create(ctx, call(t, out))
			ended <- err
		}()
		await(t, "all are there", func() bool { return sleepers(nap) == 3 })
		why := errors.New("its time is over")
		cancel(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Error(err)
		}
		await(t, "all are gone", func() bool { return sleepers(nap) == 0 })
	})
}

// A program that ends leaves nothing behind either, and nobody waits for what it left.
func TestLeftBehind(t *testing.T) {
	modes(t, func(t *testing.T, c program.Config) {
		nap := nap()
		p := open(t, c, "sleep "+nap+` & echo '{"status":"done"}' >&3`)
		began := time.Now()
		if _, _, err := run(t, p); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
		await(t, "all are gone", func() bool { return sleepers(nap) == 0 })
	})
}

// naps numbers the tests that start sleepers.
var naps atomic.Int64

// nap returns a time in seconds by which a test recognizes its sleepers, wherever they hang in the tree of processes.
func nap() string { return fmt.Sprintf("%d.%06d", 1000+naps.Add(1), os.Getpid()) }

// sleepers returns how many processes sleep for this time.
func sleepers(nap string) int {
	n := 0
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		if text, err := os.ReadFile(path); err == nil && string(text) == "sleep\x00"+nap+"\x00" {
			n++
		}
	}
	return n
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// A plug-in prints a gigabyte before it answers. All of it passes, and none of it stays.
func TestGigabyte(t *testing.T) {
	size := int64(1 << 30)
	if racedetector.On || testing.Short() {
		size = 1 << 26
	}
	p := open(t, program.Config{}, fmt.Sprintf(`head -c %d /dev/zero; echo '{"status":"done"}' >&3`, size))
	out := &counter{}
	c := call(t, nil)
	c.Out = out
	before := used()
	if _, err := p.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if out.n != size {
		t.Errorf("%d bytes arrived", out.n)
	}
	if grown := used() - before; grown > 64<<10 {
		t.Errorf("it took %d KiB of memory", grown)
	}
}

// used returns the most memory that this process ever had, in KiB.
func used() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Maxrss
}

// A confined plug-in reads the files of its task although only their owner may, and the folder of an archive; it reads
// nothing else of the provisioner's, and cannot change its own program.
func TestConfined(t *testing.T) {
	c := program.Config{Cell: cell(t)}
	p := open(t, c, `
task=$(cat)
key=$(printf %s "$task" | sed 's/.*"team":"\([^"]*\)".*/\1/')
books=$(printf %s "$task" | sed 's/.*"books":"\([^"]*\)".*/\1/')
echo "key: $(cat "$key") $(stat -c %a "$key"), book: $(cat "$books/recipes/ntp.rb")"
cat "$(cat "$books/secret-path")" && echo "read the secret"
echo x >> "$ORDAIN_PLUGIN/main.sh" && echo "changed itself"
echo x > work-file && echo "uses its folder"
echo '{"status":"done"}' >&3
`)
	top := t.TempDir()
	secret := filepath.Join(top, "server-secret")
	for path, text := range map[string]string{
		secret: "top secret", filepath.Join(top, "team"): "the key",
		filepath.Join(top, "books", "recipes", "ntp.rb"): "package", filepath.Join(top, "books", "secret-path"): secret,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	out := &output{}
	one := call(t, out)
	one.Files = files{"team": filepath.Join(top, "team"), "books": filepath.Join(top, "books")}
	one.Resources = []task.Resource{{Type: "ssh_keys", Name: "team"}, {Type: "cookbooks", Name: "books"}}
	if _, err := p.Create(t.Context(), one); err != nil {
		t.Fatal(err, out)
	}
	text := out.String()
	if !strings.Contains(text, "key: the key 400, book: package") || !strings.Contains(text, "uses its folder") {
		t.Error(text)
	}
	if strings.Contains(text, "top secret") || strings.Contains(text, "changed itself") {
		t.Error(text)
	}
	if found, _ := os.ReadDir(one.Work); len(found) != 0 {
		t.Errorf("the call left %v", found)
	}
}

// A folder has plug-ins, and others that cannot be used; each of the latter is reported.
func TestLoad(t *testing.T) {
	top := t.TempDir()
	script := "exit 0"
	write(t, filepath.Join(top, "a"), `{"name":"a","protocol":1,"program":"main.sh","providertypes":["cloud"],
		"automatortypes":["shell"],"cloud":{"name":"cloud","parameters":{}}}`, script)
	write(
		t,
		filepath.Join(top, "b"),
		`{"name":"b","protocol":1,"program":"main.sh","providertypes":["cloud","other"]}`,
		script,
	)
	for name, text := range map[string]string{
		"c": `{`, "d": `{"name":"d","protocol":2,"program":"main.sh","providertypes":["x"]}`,
		"e": `{"name":"e","protocol":1,"program":"../a/main.sh","providertypes":["x"]}`,
		"f": `{"name":"f","protocol":1,"program":"main.sh"}`,
		"g": `{"name":"g","protocol":1,"program":"plugin.json","providertypes":["x"]}`,
		"h": `{"name":"../h","protocol":1,"program":"main.sh","providertypes":["x"]}`,
		"i": `{"name":"i","protocol":1,"program":"missing.sh","providertypes":["x"]}`,
	} {
		write(t, filepath.Join(top, name), text, script)
	}
	if err := os.Mkdir(filepath.Join(top, "no plug-in"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, problems, err := program.Load(program.Config{Folder: top})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Programs) != 2 || len(found.Providers) != 2 || len(found.Automators) != 1 || len(problems) != 8 {
		t.Errorf("%+v\n%v", found, problems)
	}
	if p := found.Providers["cloud"].(*program.Program); p.Manifest.Name != "a" ||
		!json.Valid(p.Manifest.Types["cloud"]) {
		t.Errorf("%+v", p.Manifest)
	}
}
