package natsbus_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/bus/bustest"
	"ordain.dev/ordain/internal/bus/natsbus"
	"ordain.dev/ordain/internal/bus/natsbus/natstest"
)

// Wrong credentials: the status and the log say so without the password, once; the process goes on alone; and the
// bus connects as soon as they are right.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, `authorization { user: ordain, password: right }`)
	var log strings.Builder
	var mended atomic.Bool
	b := &bus.Bus{}
	c := natsbus.New(natsbus.Config{
		Bus: b, Installation: installation, Name: "wrong", Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Find: func(context.Context) (natsbus.Target, error) {
			password := "hunter2"
			if mended.Load() {
				password = "right"
			}
			return natsbus.Target{Servers: []string{s.URL()}, User: "ordain", Password: password}, nil
		},
	})
	defer c.Close()
	natstest.Await(t, "the error", func() bool { return c.Status().Error != "" })
	st := c.Status()
	if st.Connected || st.Server != s.Addr || !strings.Contains(st.Error, "refuses our credentials") ||
		!strings.Contains(st.Error, "[bus] user, password-file") {
		t.Errorf("the status is %+v", st)
	}
	near := b.Subscribe(nil)
	b.Publish(bus.Event{Topic: bus.Pull})
	bustest.Next(t, near)
	mended.Store(true)
	natstest.Await(t, "the connection", func() bool { return c.Status().Connected })
	if st := c.Status(); st.Error != "" {
		t.Errorf("the status is %+v", st)
	}
	c.Close()
	if text := log.String(); strings.Count(text, "refuses our credentials") != 1 || strings.Contains(text, "hunter2") {
		t.Errorf("the log says:\n%s", text)
	}
}

// A server whose certificate is not trusted gets no password, nor does one without TLS where TLS is demanded.
func TestTLSIsDemanded(t *testing.T) {
	t.Parallel()
	cert, key, pool := natstest.Certificate(t)
	secure := natstest.Start(t, `tls { cert_file: "`+cert+`", key_file: "`+key+`" }`)
	plain := natstest.Start(t)
	_, _, others := natstest.Certificate(t)
	for _, c := range []struct {
		name   string
		target natsbus.Target
		err    string
	}{
		{"trusted", natsbus.Target{Servers: []string{secure.URL()}, TLS: &tls.Config{RootCAs: pool}}, ""},
		{"of another authority",
			natsbus.Target{Servers: []string{secure.URL()}, TLS: &tls.Config{RootCAs: others}}, "[bus] tls-ca"},
		{"of another name",
			natsbus.Target{Servers: []string{secure.URL()}, TLS: &tls.Config{RootCAs: pool, ServerName: "example.org"}},
			"[bus] tls-ca"},
		{"without TLS", natsbus.Target{Servers: []string{plain.URL()}, TLS: &tls.Config{RootCAs: pool}},
			"does not offer TLS"},
		{"nobody there", natsbus.Target{Servers: []string{"nats://127.0.0.1:1"}}, "no server of the bus accepts"},
		{"no such file", natsbus.Target{Servers: []string{plain.URL()}, Credentials: "/nowhere/x.creds"},
			"/nowhere/x.creds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, conn := join(t, c.target)
			natstest.Await(
				t,
				"the outcome",
				func() bool { return conn.Status().Connected || conn.Status().Error != "" },
			)
			st := conn.Status()
			if st.Connected != (c.err == "") || !strings.Contains(st.Error, c.err) {
				t.Errorf("the status is %+v", st)
			}
		})
	}
}

// A user who may not do all that a process needs is connected, and the status says what is missing.
func TestMissingPermissions(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, `authorization { users: [
		{ user: ordain, password: right, permissions: { publish: "ordain.>", subscribe: "other.>" } }
	] }`)
	_, c := join(t, natsbus.Target{Servers: []string{s.URL()}, User: "ordain", Password: "right"})
	natstest.Await(t, "the error", func() bool { return strings.Contains(c.Status().Error, "allow the user") })
}
