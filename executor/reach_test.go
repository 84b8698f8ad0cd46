package executor

import (
	"fmt"
	"net"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// When a handler cannot reach its target, the resource is unavailable rather than
// failed, and the result says that the target could not be reached. A dry run
// does the same.
func TestTargetThatIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil { // from now on connections are refused
		t.Fatal(err)
	}
	b := newBench(t, nil)
	blue := b.module("lab", lab+fmt.Sprintf(`
import socket
def dial(handler, ctx, resource):
    socket.create_connection(("127.0.0.1", %d), timeout=5)
tricks["dial"] = dial
`, port))
	for _, action := range []Action{Deploy, DryRun} {
		away := task(blue, "host", "away", map[string]any{"what": "dial"})
		away.Action = action
		r := b.Run(t.Context(), away)
		expect(t, r, intent.StatusUnavailable, "could not be reached", "refused")
		if !r.Unreachable {
			t.Errorf("the %s does not say that the target is away", action)
		}
	}
	broken := b.Run(t.Context(), task(blue, "host", "broken", map[string]any{"what": "raise"}))
	expect(t, broken, intent.StatusFailed)
	missing := b.Run(t.Context(), Task{Action: Deploy, Blueprint: blue, Resource: intent.Resource{
		ID: intent.ResourceID{Type: "lab::Nothing", Agent: "host", Attribute: "name", Value: "x"}, Version: 3,
	}})
	expect(t, missing, intent.StatusUnavailable)
	if broken.Unreachable || missing.Unreachable {
		t.Error("a failure, or a handler that is not there, counts as a target that is away")
	}
}
