// Package cloud has what the providers for clouds share: it reads the fields of
// a provider, masks secrets in errors, and waits until a machine answers over SSH.
//
//	Call ── Fields ──▶ settings, or a refusal that names the field
//	error of a cloud ── Mask ──▶ the same error without secrets
package cloud

import (
	"context"
	"encoding/json"
	"time"

	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// Names of facts.
const (
	ProviderID = "providerid"    // the id of the machine at the provider
	HostKeys   = "ssh_host_keys" // its host keys, as a list of lines of known_hosts without the host
)

// Reach tries to log in to a machine over SSH and returns its host keys. It may wait for the machine by itself. A
// refusal ends the attempt; after any other error it is called again.
type Reach func(ctx context.Context, c plugin.Call, address string) (hostKeys []string, err error)

// Machine returns what is known of a machine that has an id.
func Machine(id string) plugin.Result {
	return plugin.Result{Facts: task.Fields{ProviderID: text(id)}}
}

// Reached returns what is known of a machine that answers.
func Reached(id, access, bind string, hostKeys []string) plugin.Result {
	r := Machine(id)
	r.Addresses = map[string]string{"access_v4": access, "bind_v4": bind}
	if len(hostKeys) > 0 {
		r.Facts[HostKeys], _ = json.Marshal(hostKeys)
	}
	return r
}

// KnownID returns the id that an earlier task learned, or "".
func KnownID(c plugin.Call) (id string) {
	_ = json.Unmarshal(c.Node.Facts[ProviderID], &id)
	return id
}

func text(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

// Pause waits for a while, or until the context ends.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Mask removes the secrets of a call, and more that the caller knows, from the text of an error.
func Mask(err error, c plugin.Call, more ...string) error {
	return secret.NewRedactor(append(more, c.Secrets...)...).Error(err)
}
