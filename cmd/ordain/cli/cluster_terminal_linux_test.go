package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a terminal: what is written to person can be read from program, as if it had been typed.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// Noor is asked on her terminal before a cluster is deleted. Only yes deletes it.
func TestDeletingAsksOnATerminal(t *testing.T) {
	t.Parallel()
	s := openClusters(t)
	s.run(0, "cluster", "import", s.folder(webShop))
	s.given("a key\n", 0, "cluster", "resource", "upload", "providertypes/pool/ssh_keys/team", "-", "--sync")
	s.run(0, "cluster", "create", "web", "--template", "lamp", "--size", "2")
	answer := func(typed string) (int, string) {
		t.Helper()
		person, program := terminal(t)
		if _, err := person.WriteString(typed + "\n"); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		status := Main([]string{"cluster", "delete", "web", "--server", s.url}, program, &out, &errs)
		return status, out.String() + errs.String()
	}
	before := s.git("-C", s.remote, "rev-parse", "main")
	for _, no := range []string{"", "n", "yesterday"} {
		status, out := answer(no)
		s.has(out, "Delete the cluster web and its machines? [y/N]", "nothing was done")
		if status != 1 || s.git("-C", s.remote, "rev-parse", "main") != before {
			t.Errorf("%q: %d", no, status)
		}
	}
	status, out := answer("y")
	s.has(out, "commit: "+s.git("-C", s.remote, "rev-parse", "main"))
	if status != 0 || s.git("-C", s.remote, "rev-parse", "main") == before {
		t.Errorf("%d\n%s", status, out)
	}
}

// On a terminal the newest line takes the place of the one before.
func TestALiveLine(t *testing.T) {
	t.Parallel()
	person, program := terminal(t)
	command := newCluster()
	command.SetOut(&output{Writer: program})
	line := newLiveLine(command)
	for _, text := range []string{"one", "one", "two"} {
		line.show(text)
	}
	line.end()
	// A terminal may pass on what was written in several parts.
	const want = "\r\x1b[Kone\r\x1b[Ktwo\r\n"
	got := make([]byte, len(want))
	if n, err := io.ReadFull(person, got); err != nil || string(got) != want {
		t.Errorf("the terminal got %q, %v", got[:n], err)
	}
}
