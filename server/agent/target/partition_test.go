package target

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/agent/protocol"
)

// cable connects this machine with a network namespace of the test's own. drop and restore are what happens to a cable.
type cable struct {
	t               *testing.T
	namespace, veth string
	here, there     string // addresses
}

func newCable(t *testing.T) *cable {
	t.Helper()
	ip := tool.Need(t, "ip")
	if os.Geteuid() != 0 {
		tool.Missing(t, "only root can make network namespaces")
	}
	n := os.Getpid() % 16000
	c := &cable{
		t: t, namespace: fmt.Sprintf("ordain-test-%d", n), veth: fmt.Sprintf("ordt%d", n),
		here: fmt.Sprintf("10.213.%d.%d", n/64, n%64*4+1), there: fmt.Sprintf("10.213.%d.%d", n/64, n%64*4+2),
	}
	if out, err := exec.Command(ip, "netns", "add", c.namespace).CombinedOutput(); err != nil {
		tool.Missing(t, "no network namespace can be made: %v: %s", err, out)
	}
	t.Cleanup(
		func() { _ = exec.Command(ip, "netns", "delete", c.namespace).Run() },
	) // its end of the cable goes with it
	for _, line := range []string{
		"link add " + c.veth + " type veth peer name eth0 netns " + c.namespace,
		"address add " + c.here + "/30 dev " + c.veth,
		"link set " + c.veth + " up",
		"-n " + c.namespace + " address add " + c.there + "/30 dev eth0",
		"-n " + c.namespace + " link set eth0 up",
		"-n " + c.namespace + " link set lo up",
	} {
		c.ip(line)
	}
	return c
}

func (c *cable) ip(line string) {
	c.t.Helper()
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		c.t.Fatalf("ip %s: %v: %s", line, err, out)
	}
}

func (c *cable) drop()    { c.ip("link set " + c.veth + " down") }
func (c *cable) restore() { c.ip("link set " + c.veth + " up") }

// The link between server and agent is dropped while a handler runs and while another command is on its way. The
// handler goes on. After the link is back the answer arrives; the server sends again what the agent does not
// have, and nothing runs twice.
func TestALinkThatIsDropped(t *testing.T) {
	t.Parallel()
	wire := newCable(t)
	s := newServer(t, wire.here, time.Now())
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	asProcess(t, dir, s.token, "ip", "netns", "exec", wire.namespace)
	l := s.link()
	b, needs := l.blueprint(l.hello.Machine.Pythons[0])
	runs, onItsWay := deployment(1, b, needs, "runs", file, "wait"), deployment(2, b, needs, "on its way", file, "")
	l.send(runs)
	eventually(t, "the handler runs", func() bool { return ranTimes(t, file, "runs") == 1 })
	wire.drop()
	l.send(onItsWay) // into a cable that leads nowhere
	if err := os.WriteFile(file+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answer := filepath.Join(dir, "agent", "answers", runs.ID)
	eventually(t, "the answer is on the agent's disk", func() bool { _, err := os.Stat(answer); return err == nil })
	_ = l.conn.CloseNow()
	wire.restore()
	l = s.link()
	// What was sent into the cable may have come out of it when it was mended.
	if known := append(l.hello.Unrecorded, l.hello.Running...); int(l.hello.Seen) != len(known) ||
		!slices.Contains(l.hello.Unrecorded, runs.ID) {
		t.Errorf("hello says seen %d, unrecorded %v", l.hello.Seen, l.hello.Unrecorded)
	}
	if a := l.answer(runs.ID); a.Status != "deployed" {
		t.Errorf("the answer is %s", text(a))
	}
	l.send(runs) // a server that is not sure sends it again
	if a := l.answer(runs.ID); a.Status != "deployed" {
		t.Errorf("the answer is %s", text(a))
	}
	l.record(runs.ID)
	l.send(onItsWay)
	if a := l.answer(onItsWay.ID); a.Status != "deployed" {
		t.Errorf("the answer is %s", text(a))
	}
	wire.drop() // before the answer is recorded
	_ = l.conn.CloseNow()
	wire.restore()
	l = s.link()
	if a := l.answer(onItsWay.ID); a.Status != "deployed" {
		t.Errorf("the answer is %s", text(a))
	}
	if n, m := ranTimes(t, file, "runs"), ranTimes(t, file, "on its way"); n != 1 || m != 1 {
		t.Errorf("the handlers ran %d times and %d times", n, m)
	}
	l.record(onItsWay.ID)
	done := protocol.CommandMessage{
		Type: protocol.Command, Seq: 3, ID: deployment(3, nil, nil, "", "", "").ID, DeadlineMS: 10_000,
		Action: protocol.Forget, Needs: []string{}, Payload: protocol.Payload{Hashes: needs[:1]},
	}
	l.send(done)
	if a := l.answer(done.ID); a.Status != protocol.Done {
		t.Errorf("the answer is %s", text(a))
	}
	if _, err := os.Stat(filepath.Join(dir, "agent", "contents", needs[0])); !os.IsNotExist(err) {
		t.Errorf("a content that the server wants forgotten is there: %v", err)
	}
}
