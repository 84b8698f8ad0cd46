// Package cloudtest has clouds for tests of providers, on loopback.
//
//	EC2:  moto, a server in Python, behind a proxy that misbehaves on request
//	Nova: a server of our own that speaks Keystone, Nova, Glance and Neutron, and misbehaves on request
package cloudtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// Fields makes fields of texts and switches.
func Fields(t testing.TB, values map[string]any) task.Fields {
	t.Helper()
	out := task.Fields{}
	for name, value := range values {
		b, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = b
	}
	return out
}

// Call is a task for the node with a tag.
func Call(t testing.TB, tag string, fields task.Fields) plugin.Call {
	t.Helper()
	c := plugin.Call{Out: t.Output(), Files: Keys{"team"}, Work: t.TempDir()}
	c.Attempt, c.Tag = 1, tag
	c.Cluster = task.Cluster{Name: "shop", Owner: "ann", Environment: "staging"}
	c.Node = task.Node{
		Number: 1000, Hostname: "shop7-1000.local", HardwareType: "small", ImageType: "debian", SSHUser: "admin",
	}
	c.Provider = task.Provider{Name: "our-cloud", Fields: fields}
	return c
}

// Keys are the names of the SSH keys that a plug-in may use.
type Keys []string

// Path implements plugin.Files.
func (k Keys) Path(kind, name string) (string, error) {
	for _, have := range k {
		if kind == "ssh_keys" && name == have {
			return "/nowhere/" + name, nil
		}
	}
	return "", fmt.Errorf("there is no %s %s; there are: %s", kind, name, strings.Join(k, ", "))
}

// Door stands for the SSH server of machines.
type Door struct {
	mu     sync.Mutex
	Refuse int // how often it does not answer first
	asked  []string
}

// Reach is a cloud.Reach.
func (d *Door) Reach(_ context.Context, _ plugin.Call, address string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, address)
	if d.Refuse > 0 {
		d.Refuse--
		return nil, fmt.Errorf("connection to %s refused", address)
	}
	return []string{"ssh-ed25519 AAAA"}, nil
}

// Asked returns the addresses that were tried.
func (d *Door) Asked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.asked...)
}
