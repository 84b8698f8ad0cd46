package eventbus_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/bus/bustest"
	"ordain.dev/ordain/internal/bus/natsbus/natstest"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/eventbus"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// Variables of a process that is a replica and nothing else: the database, and the file with the key.
const (
	childURL = "ORDAIN_TEST_BUS_DATABASE"
	childKey = "ORDAIN_TEST_BUS_KEY"
)

// runChild is a replica that publishes until it is killed.
func runChild(url, file string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s, err := store.Open(context.Background(), store.Config{URL: url, Logger: log})
	fail(err)
	key, err := secret.OpenKey(file)
	fail(err)
	b := &bus.Bus{}
	service, err := eventbus.New(eventbus.Config{
		Bus: b, Record: s, Installation: installation, Key: key, Name: "child", Logger: log,
	})
	fail(err)
	fail(service.Start(context.Background()))
	for range time.Tick(10 * time.Millisecond) {
		b.Publish(bus.Event{Topic: bus.Agent, ID: "child"})
	}
}

// The process that runs the server is killed. Another one takes over in a moment, and everybody is told to read again.
func TestTheProcessWithTheServerIsKilled(t *testing.T) {
	t.Parallel()
	url, file := storetest.URL(t), filepath.Join(t.TempDir(), "key")
	key, err := secret.OpenKey(file)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childURL+"="+url, childKey+"="+file)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Stderr = t.Output()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	watching := openStore(t, url)
	natstest.Await(t, "the server of the other process", func() bool {
		record, err := watching.BusServer(t.Context())
		return err == nil && record.Address != ""
	})
	a, b := start(t, url, key, nil), start(t, url, key, nil)
	far := b.bus.Subscribe(nil)
	if e := bustest.Next(t, far); e.ID != "child" || a.Status().Serving || b.Status().Serving {
		t.Fatalf("got %v", e)
	}
	exchange(t, a, b)
	for len(far.Events()) > 0 {
		<-far.Events()
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	serving(t, a, b)
	bustest.AwaitLagged(t, far)
	exchange(t, a, b)
}
