package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/server/agent/agenttest"
	"ordain.dev/ordain/server/agent/conformance"
	"ordain.dev/ordain/server/agent/protocol"
)

// fault is the variable that makes this program an agent, with a fault.
const fault = "CONFORMANCE_TEST_FAULT"

func TestMain(m *testing.M) {
	if f, ok := os.LookupEnv(fault); ok {
		if err := agent(context.Background(), f); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// agent keeps the protocol as far as it can without handlers, apart from its fault.
func agent(ctx context.Context, fault string) error {
	c, err := agenttest.Join(ctx, os.Getenv("ORDAIN_JOIN_TOKEN"))
	if err != nil {
		return err
	}
	holds := map[string]bool{}
	for {
		hello := agenttest.Hello()
		hello.Holds = slices.AppendSeq(hello.Holds, maps.Keys(holds))
		if fault == "hello" {
			hello.Holds = nil
		}
		conn, _, err := c.Start(ctx, hello)
		if err != nil {
			return err
		}
		var parts []byte
		for {
			m, err := conn.Receive(ctx)
			if err != nil {
				break // it was cut
			}
			switch m := m.(type) {
			case *protocol.Unknown:
				if fault == "unknown" {
					return fmt.Errorf("what is %s", m.Type)
				}
			case *protocol.PingMessage:
				if fault == "ping" {
					m.ID++
				}
				err = conn.Send(ctx, protocol.PongMessage{Type: protocol.Pong, ID: m.ID})
			case *protocol.ContentMessage:
				if parts = append(parts, m.Data...); !m.Last {
					continue
				}
				s := protocol.StoredMessage{Type: protocol.Stored, Hash: m.Hash}
				if protocol.Hash(parts) != m.Hash && fault != "wrong-content" {
					s.Error = "wrong hash"
				} else {
					holds[m.Hash] = fault != "content" || len(holds) == 0
				}
				maps.DeleteFunc(holds, func(_ string, kept bool) bool { return !kept })
				parts = nil
				err = conn.Send(ctx, s)
			case *protocol.CommandMessage:
				body := protocol.AnswerBody{Status: protocol.Refused, Lines: []json.RawMessage{[]byte(
					`{"level":"ERROR","msg":"no","timestamp":"2026-11-25T20:00:00Z"}`)}}
				if fault == "refused" {
					body.Status = protocol.Done
				}
				err = conn.Answer(ctx, m.ID, body)
			}
			if err != nil {
				break
			}
		}
		conn.Close()
		time.Sleep(10 * time.Millisecond) // before it connects again
	}
}

// An agent that keeps the protocol passes, and of one with a fault the suite finds exactly that.
func TestTheSuiteFindsFaults(t *testing.T) {
	t.Parallel()
	basic := []string{"join", "hello", "ping", "unknown", "content", "wrong-content", "refused"}
	for _, broken := range append([]string{""}, basic[1:]...) {
		t.Run("fault "+broken, func(t *testing.T) {
			t.Parallel()
			only := basic
			if broken != "" {
				only = []string{"join", broken}
			}
			results, err := conformance.Run(t.Context(), conformance.Config{
				Program: []string{"/usr/bin/env", fault + "=" + broken, os.Args[0]}, Only: only, Dir: t.TempDir(),
				Patience: 5 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, r := range results {
				if r.Failed != "" {
					failed = append(failed, r.Name)
				}
			}
			if len(results) != len(only) {
				t.Errorf("%d checks ran", len(results))
			}
			if got := strings.Join(failed, ", "); got != broken {
				t.Errorf("the failed checks are %s: %+v", strings.Join(failed, ", "), results)
			}
		})
	}
}

// The suite says what is wrong with how it was called.
func TestBadCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []conformance.Config{
		{}, {Program: []string{"/bin/true"}, Only: []string{"juggling"}},
	} {
		if _, err := conformance.Run(t.Context(), c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	results, err := conformance.Run(t.Context(), conformance.Config{
		Program: []string{"/does/not/exist"}, Only: []string{"join"}, Patience: time.Second,
	})
	if err != nil || len(results) != 1 || !strings.Contains(results[0].Failed, "started") {
		t.Errorf("a program that does not exist: %+v, %v", results, err)
	}
}
