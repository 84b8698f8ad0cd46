// Package pool is the provider of machines that exist. The server chooses a free machine
// of the pool for a node, and keeps it for the node until it is deleted; this plug-in
// gets it in the provider's field "machine" and does what the machine itself is needed for.
//
//	Create: does it answer? ──▶ Confirm: log in, pin its host keys, ask its addresses ──▶ … ──▶ Delete: clean it
//
// A machine of a pool stays what it is: it keeps its name, and what the cleaning script
// does not remove.
package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/provisioner/target"
	"ordain.dev/ordain/server/cluster/task"
)

// Fields and resource types of the provider.
const (
	MachineField = "machine" // a Machine: set by the server, and by nobody else
	// CleanField is run on a machine that its node no longer needs: the name of a resource of the type scripts, or a
	// command.
	CleanField  = "clean_script"
	ScriptsType = "scripts"
)

// Machine is a machine of the pool.
type Machine struct {
	Address string `json:"address"`
	Port    int    `json:"port,omitempty"` // 22 if it is 0
	User    string `json:"user,omitempty"`
	// HostKeys are declared by the administrator. Without them, the key is trusted that the machine shows first.
	HostKeys []string `json:"hostkeys,omitempty"`
}

// Pool is the plug-in. The zero value is ready to use.
type Pool struct {
	// Timeout is how long a machine may take to answer; 20 seconds if it is 0.
	Timeout time.Duration
	// Wait is how long Confirm tries again to log in; a minute if it is 0.
	Wait time.Duration
}

var _ plugin.Provider = Pool{}

// machine returns the machine of a call, and whether it has one.
func machine(c plugin.Call) (Machine, bool, error) {
	var m Machine
	raw, ok := c.Provider.Fields[MachineField]
	if !ok || string(raw) == "null" {
		return m, false, nil
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.Address == "" || m.Port < 0 || m.Port > 65535 {
		return m, false, &plugin.Refused{Err: fault.New("pool.machine", fault.Invalid,
			"the machine that was chosen from the pool has no valid address and port").
			Hint("correct it in the provider " + c.Provider.Name)}
	}
	if m.Port == 0 {
		m.Port = 22
	}
	return m, true, nil
}

// id is the machine's id among the facts of its node.
func (m Machine) id() string { return net.JoinHostPort(m.Address, strconv.Itoa(m.Port)) }

// confirmed reports whether the facts of the node are about this machine, and not about one it had before.
func (m Machine) confirmed(c plugin.Call) bool {
	_, pinned := c.Node.Facts[target.HostKeysFact]
	return pinned && target.Text(c.Node.Facts, idFact) == m.id()
}

const idFact = "providerid"

func chosen(c plugin.Call) (Machine, error) {
	m, ok, err := machine(c)
	if err == nil && !ok {
		err = &plugin.Refused{Err: fault.New("pool.machine", fault.Exhausted,
			"no machine of the pool "+c.Provider.Name+" was chosen for "+c.Node.Hostname).
			Hint("add machines to the pool, or delete clusters that have some")}
	}
	return m, err
}

// Create returns the address of the machine if it can be reached.
func (p Pool) Create(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	m, err := chosen(c)
	if err != nil {
		return plugin.Result{}, err
	}
	limit := p.Timeout
	if limit <= 0 {
		limit = 20 * time.Second
	}
	address := m.id()
	conn, err := (&net.Dialer{Timeout: limit}).DialContext(ctx, "tcp", address)
	if err != nil {
		f := fault.Wrap("pool.Create", fault.Unavailable, err).
			Say(fmt.Sprintf("the machine %s of the pool %s cannot be reached", address, c.Provider.Name)).
			Hint("check that the machine runs; correct its address, or take it out of the pool")
		if errors.Is(err, syscall.ECONNREFUSED) {
			f.Advice = "the machine runs, but no SSH server does on this port; start it, or correct the port"
		}
		return plugin.Result{}, f
	}
	_ = conn.Close()
	id, err := json.Marshal(m.id())
	if err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{
		Addresses: map[string]string{"access_v4": m.Address}, Facts: task.Fields{idFact: id},
	}, nil
}

// config returns how to log in to the machine.
func (p Pool) config(c plugin.Call, m Machine) (ssh.Config, error) {
	config, err := target.Endpoint(c)
	if err != nil {
		return config, err
	}
	config.Host, config.Port, config.Timeout = m.Address, m.Port, p.Timeout
	if m.User != "" {
		config.User = m.User
	}
	if !m.confirmed(c) {
		config.HostKeys = nil
	}
	if len(m.HostKeys) > 0 { // what an administrator declares counts more than what was learnt
		config.HostKeys = m.HostKeys
	}
	return config, nil
}

// Confirm logs in, and pins the machine's host keys.
func (p Pool) Confirm(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	m, err := chosen(c)
	if err != nil {
		return plugin.Result{}, err
	}
	config, err := p.config(c, m)
	if err != nil {
		return plugin.Result{}, err
	}
	wait := p.Wait
	if wait <= 0 {
		wait = time.Minute
	}
	result, err := target.Confirm(ctx, c, target.First{Config: config, Wait: wait})
	if err != nil {
		return result, err
	}
	if result.Facts[idFact], err = json.Marshal(m.id()); err != nil {
		return result, err
	}
	if name := target.Text(result.Facts, "hostname"); name != "localhost" {
		result.Hostname = name
	}
	return result, nil
}

// Delete runs the cleaning script. A machine that was never confirmed needs none. One that cannot be reached is an
// error: it could still run, with what the cluster has on it.
func (p Pool) Delete(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	m, ok, err := machine(c)
	if err != nil || !ok {
		return plugin.Result{}, err
	}
	if !m.confirmed(c) {
		return plugin.Result{}, nil
	}
	config, err := p.config(c, m)
	if err != nil {
		return plugin.Result{}, err
	}
	t, err := target.OpenAt(ctx, c, config)
	if err != nil {
		return plugin.Result{}, err
	}
	err = p.clean(ctx, c, t)
	if e := t.Close(); err == nil && e != nil {
		err = e
	}
	return plugin.Result{}, err
}

func (p Pool) clean(ctx context.Context, c plugin.Call, t *target.Target) error {
	script := target.Text(c.Provider.Fields, CleanField)
	if script == "" {
		return nil
	}
	if slices.ContainsFunc(c.Resources, func(r task.Resource) bool {
		return r.Kind == "providertypes" && r.Plugin == c.Provider.Type && r.Type == ScriptsType && r.Name == script
	}) {
		file, err := c.Files.Path(ScriptsType, script)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return fault.Wrap("pool.Delete", fault.Internal, err).Say("cannot read the script " + script)
		}
		if err := t.Write(ctx, "clean", 0o700, text); err != nil {
			return err
		}
		script = "exec ./clean"
	}
	err := t.Run(ctx, target.Script{Text: script, Limit: time.Duration(c.TimeoutMS) * time.Millisecond})
	if err != nil {
		return fmt.Errorf("cleaning the machine %s: %w", c.Node.Hostname, err)
	}
	return nil
}
