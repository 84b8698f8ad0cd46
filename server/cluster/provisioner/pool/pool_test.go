package pool_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/pool"
	"ordain.dev/ordain/server/cluster/provisioner/target"
	"ordain.dev/ordain/server/cluster/task"
)

var plug = pool.Pool{Timeout: 3 * time.Second, Wait: 3 * time.Second}

// call is a call for a node that got the machine from the pool, and was not created yet.
func call(t *testing.T, m *clustertest.Machine) plugin.Call {
	t.Helper()
	c, _ := m.Call(t, task.Create)
	c.Node.Facts, c.Node.Addresses, c.Node.SSHUser = nil, nil, ""
	c.Provider.Fields[pool.MachineField] = clustertest.JSON(t, pool.Machine{
		Address: m.Address, Port: m.Port, User: m.User,
	})
	return c
}

// learn adds a result to the node, as the server does.
func learn(c *plugin.Call, r plugin.Result) {
	if r.Addresses != nil {
		c.Node.Addresses = r.Addresses
	}
	facts := task.Fields{}
	for _, from := range []task.Fields{c.Node.Facts, r.Facts} {
		for name, value := range from {
			facts[name] = value
		}
	}
	c.Node.Facts = facts
}

// The life of a node on a machine of the pool: it is created, confirmed, worked on, and cleaned when it goes; each step
// may happen twice.
func TestTheLifeOfANode(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c := call(t, m)
	c.Provider.Fields[pool.CleanField] = clustertest.JSON(t, "rm -f ~/installed && echo clean >>~/cleaned")
	for range 2 {
		r, err := plug.Create(t.Context(), c)
		if err != nil || r.Addresses["access_v4"] != m.Address {
			t.Fatalf("created %v, %v", r, err)
		}
		learn(&c, r)
	}
	for range 2 {
		r, err := plug.Confirm(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		if err := json.Unmarshal(r.Facts[target.HostKeysFact], &keys); err != nil || !slices.Equal(keys, m.HostKeys()) {
			t.Errorf("pinned %q, %v", keys, err)
		}
		if r.Addresses["access_v4"] != m.Address || r.Addresses["bind_v4"] != m.Address ||
			!strings.HasPrefix(r.Hostname, m.Hostname) {
			t.Errorf("learnt %v and the host name %q, want %s", r.Addresses, r.Hostname, m.Hostname)
		}
		learn(&c, r)
	}
	// An automator finds the machine by what was learnt.
	node, err := target.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Run(t.Context(), target.Script{Text: ": >~/installed"}); err != nil {
		t.Error(err)
	}
	if err := node.Close(); err != nil {
		t.Error(err)
	}

	// While it cannot be reached it may still run: it is not given up.
	m.Stop()
	if _, err := plug.Delete(t.Context(), c); err == nil || plugin.IsRefused(err) {
		t.Errorf("deleting a machine that is off: %v", err)
	}
	m.Restart()
	if !m.Exists("installed") {
		t.Error("the machine has nothing to clean")
	}
	for range 2 {
		if _, err := plug.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if m.Exists("installed") || m.Read("cleaned") != "clean\nclean\n" {
		t.Error("the machine was not cleaned")
	}
}

// A cleaning script may be a resource of the provider; one that fails is an error, so that the machine does
// not go back.
func TestACleaningScriptOfTheResources(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c := call(t, m)
	r, err := plug.Confirm(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	learn(&c, r)
	clustertest.AddResource(t, &c, "pool", pool.ScriptsType, "wipe",
		"#!/bin/sh\n: >~/wiped; [ -e ~/may-go ] || { echo busy; exit 1; }\n")
	c.Resources[0].Kind = "providertypes"
	c.Provider.Fields[pool.CleanField] = clustertest.JSON(t, "wipe")
	_, err = plug.Delete(t.Context(), c)
	if err == nil || plugin.IsRefused(err) || !strings.Contains(err.Error(), "busy") {
		t.Errorf("got %v", err)
	}
	if !m.Exists("wiped") {
		t.Error("the script did not run")
	}
}

func TestDeclaredHostKeysAndRefusals(t *testing.T) {
	t.Parallel()
	machines := clustertest.Machines(t, 2)
	m := machines[0]
	declare := func(keys []string) plugin.Call {
		c := call(t, m)
		c.Provider.Fields[pool.MachineField] = clustertest.JSON(t, pool.Machine{
			Address: m.Address, Port: m.Port, User: m.User, HostKeys: keys,
		})
		return c
	}
	if _, err := plug.Confirm(t.Context(), declare(m.HostKeys())); err != nil {
		t.Error(err)
	}
	// The address answers with another key than the declared one: nothing is learnt.
	if _, err := plug.Confirm(t.Context(), declare(machines[1].HostKeys())); !plugin.IsRefused(err) ||
		!strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v", err)
	}
	// The node gets another machine: what was learnt about the one before does not count.
	c := call(t, machines[1])
	r, err := plug.Confirm(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	learn(&c, r)
	c.Provider.Fields[pool.MachineField] = call(t, m).Provider.Fields[pool.MachineField]
	if _, err := plug.Confirm(t.Context(), c); err != nil {
		t.Error(err)
	}
	// The same machine with another host key is refused.
	c.Provider.Fields[pool.MachineField] = call(t, machines[1]).Provider.Fields[pool.MachineField]
	machines[1].ChangeHostKey()
	if _, err := plug.Confirm(t.Context(), c); !plugin.IsRefused(err) {
		t.Errorf("got %v", err)
	}
	m.Refuse()
	if _, err := plug.Confirm(t.Context(), call(t, m)); !plugin.IsRefused(err) {
		t.Errorf("a key that the machine does not let in: %v", err)
	}
	m.Stop()
	if _, err := plug.Create(t.Context(), call(t, m)); err == nil || plugin.IsRefused(err) ||
		!strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a machine that is off: %v", err)
	}
	if _, err := plug.Delete(t.Context(), call(t, m)); err != nil {
		t.Errorf("a machine that is off and was never confirmed: %v", err)
	}
	c = call(t, m)
	delete(c.Provider.Fields, pool.MachineField)
	if _, err := plug.Create(t.Context(), c); !plugin.IsRefused(err) || !strings.Contains(err.Error(), "was chosen") {
		t.Errorf("no machine: %v", err)
	}
	if _, err := plug.Delete(t.Context(), c); err != nil {
		t.Errorf("no machine any more: %v", err)
	}
	c.Provider.Fields[pool.MachineField] = json.RawMessage(`{"address": "", "port": 70000}`)
	if _, err := plug.Create(t.Context(), c); !plugin.IsRefused(err) {
		t.Errorf("a machine without an address: %v", err)
	}
}
