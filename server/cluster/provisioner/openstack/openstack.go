// Package openstack makes machines in clouds that run OpenStack: Keystone 3,
// Nova, Glance, and Neutron for floating addresses.
//
//	tag ── list servers ──▶ there: take it
//	                   └──▶ not there: create, list again ──▶ two: keep the older one
//
// Nova has no client token. A server gets its tag as metadata in the request that
// makes it, and its name has the tag too, so that Nova can list by it. Two makers
// at the same moment both see both servers after they made theirs, and both keep
// the same one. An answer that got lost does no harm: the server is in the list.
package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// Plugin is the provider. It holds nothing between calls.
type Plugin struct {
	Reach     cloud.Reach     // must be set
	Transport *http.Transport // for other ways to the cloud; nil for the usual one
	Poll      time.Duration   // between looks at a machine; 0 for 3 s
}

var _ plugin.Provider = (*Plugin)(nil)

// Create implements plugin.Provider.
func (p *Plugin) Create(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	order, err := orderFor(c)
	if err != nil {
		return plugin.Result{}, err
	}
	a, err := p.login(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	defer a.close()
	there, err := a.find(ctx)
	if err != nil {
		return plugin.Result{}, a.explain("look for the machine", err)
	}
	// A server in the state ERROR at this point was never up.
	for len(there) > 0 && (c.Replace || there[0].Status == "ERROR") {
		if err := a.remove(ctx, there[0]); err != nil {
			return plugin.Result{}, a.explain("delete the machine that is to be replaced", err)
		}
		there = there[1:]
	}
	if len(there) == 0 {
		if err := a.complete(ctx, &order); err != nil {
			return plugin.Result{}, a.explain("prepare the machine", err)
		}
		made := a.make(ctx, order)
		// Whatever Nova answered: what it lists now is what there is.
		if there, err = a.find(ctx); err != nil {
			return a.inAccount(plugin.Result{}), a.explain("make the machine", errors.Join(made, err))
		}
		if len(there) == 0 {
			if made == nil {
				made = errors.New("Nova says that it made a server, and does not list it")
			}
			return plugin.Result{}, a.explain("make the machine", made)
		}
		fmt.Fprintf(c.Out, "server %s was made\n", there[0].ID)
	} else {
		fmt.Fprintf(c.Out, "server %s has the tag of the node\n", there[0].ID)
	}
	for _, second := range there[1:] {
		if err := a.remove(ctx, second); err != nil {
			return plugin.Result{}, a.explain("delete a second machine with the same tag", err)
		}
	}
	return a.inAccount(cloud.Machine(there[0].ID)), nil
}

// Confirm implements plugin.Provider.
func (p *Plugin) Confirm(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	if p.Reach == nil {
		return plugin.Result{}, errors.New("the plug-in openstack was built without a way to reach machines")
	}
	a, err := p.login(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	defer a.close()
	var why error
	for {
		there, err := a.find(ctx)
		if err != nil {
			return plugin.Result{}, a.explain("look at the machine", errors.Join(err, why))
		}
		if len(there) == 0 {
			return plugin.Result{}, fmt.Errorf("no server of project %s has the metadata %s=%s; the machine may "+
				"have been deleted by hand", a.project, tagName, c.Tag)
		}
		var r plugin.Result
		if r, why = a.confirm(ctx, there[0]); why == nil {
			return r, nil
		} else if !errors.Is(why, errNotYet) {
			return plugin.Result{}, a.explain("confirm the machine", why)
		}
		if err := cloud.Pause(ctx, p.poll()); err != nil {
			return plugin.Result{}, a.mask(errors.Join(err, why))
		}
	}
}

// errNotYet is the mark of an error that may pass while Confirm waits.
var errNotYet = errors.New("not yet")

type notYet struct{ error }

func (n notYet) Unwrap() []error { return []error{n.error, errNotYet} }

// confirm looks at a machine once.
func (a *account) confirm(ctx context.Context, s servers.Server) (plugin.Result, error) {
	switch s.Status {
	case "ACTIVE":
	case "BUILD", "REBOOT", "UNKNOWN":
		return plugin.Result{}, notYet{fmt.Errorf("server %s is in the state %s", s.ID, s.Status)}
	default:
		said := ""
		if s.Fault.Message != "" {
			said = ": " + brief(s.Fault.Message)
		}
		return plugin.Result{}, fmt.Errorf("server %s is in the state %s, and should be ACTIVE%s", s.ID, s.Status, said)
	}
	bind, access := addresses(s)
	if bind == "" {
		return plugin.Result{}, notYet{fmt.Errorf("server %s has no address", s.ID)}
	}
	if a.floating && access == "" {
		var err error
		if access, err = a.float(ctx, s); err != nil {
			return plugin.Result{}, fmt.Errorf("cannot give server %s a floating address: %w", s.ID, err)
		}
	}
	if access == "" {
		access = bind
	}
	keys, err := a.plugin.Reach(ctx, a.call, access)
	if plugin.IsRefused(err) {
		return plugin.Result{}, err
	} else if err != nil {
		return plugin.Result{}, notYet{fmt.Errorf("server %s is active, but cannot be reached over SSH at %s: %w; "+
			"the security groups must let port 22 in", s.ID, access, err)}
	}
	return a.inAccount(cloud.Reached(s.ID, access, bind, keys)), nil
}

// Delete implements plugin.Provider.
func (p *Plugin) Delete(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	a, err := p.login(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	defer a.close()
	there, err := a.find(ctx)
	if err != nil {
		return plugin.Result{}, a.explain("look for the machine", err)
	}
	for _, s := range there {
		if err := a.remove(ctx, s); err != nil {
			return plugin.Result{}, a.explain("delete the machine", err)
		}
	}
	if a.floating {
		if err := a.release(ctx); err != nil {
			return plugin.Result{}, a.explain("release the floating address", err)
		}
	}
	return plugin.Result{}, nil
}

func (p *Plugin) poll() time.Duration {
	if p.Poll > 0 {
		return p.Poll
	}
	return 3 * time.Second
}
