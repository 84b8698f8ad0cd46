// Package aws makes machines in Amazon EC2, and in clouds that speak its protocol.
//
//	tag ── DescribeInstances ──▶ there: take it
//	                        └──▶ not there: RunInstances, with the tag and a client token made from it
//
// Two things keep a machine from being made twice. An instance gets its tag in
// the request that makes it, so it can be found from then on; and until EC2
// lists it, the same client token makes EC2 answer with the same instance.
//
// Only the fields of the provider count: neither environment variables nor files nor the metadata service of the
// machine can lend other credentials.
package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ordain.dev/ordain/server/cluster/provisioner/aws/ec2"
	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// Plugin is the provider. It holds nothing between calls.
type Plugin struct {
	Reach     cloud.Reach     // must be set
	Transport *http.Transport // for other ways to EC2; nil for the usual one
	Poll      time.Duration   // between looks at a machine; 0 for 3 s
	Settle    time.Duration   // how long EC2 may take to list a machine that it made; 0 for 10 s
}

var _ plugin.Provider = (*Plugin)(nil)

// Create implements plugin.Provider.
func (p *Plugin) Create(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	a, err := p.account(c)
	if err != nil {
		return plugin.Result{}, err
	}
	order, err := orderFor(c)
	if err != nil {
		return plugin.Result{}, err
	}
	if err := a.same(ctx); err != nil {
		return plugin.Result{}, err
	}
	there, err := a.find(ctx)
	if err != nil {
		return plugin.Result{}, a.explain("look for the machine", err)
	}
	if c.Replace {
		if err := a.terminate(ctx, there); err != nil {
			return plugin.Result{}, a.explain("delete the machine that is to be replaced", err)
		}
		there = nil
	}
	if len(there) > 0 {
		// Two can only be there if EC2 forgot a client token, or if somebody copied the tag by hand.
		if err := a.terminate(ctx, there[1:]); err != nil {
			return plugin.Result{}, a.explain("delete a second machine with the same tag", err)
		}
		fmt.Fprintf(c.Out, "instance %s has the tag of the node\n", there[0].ID)
		return a.inAccount(cloud.Machine(there[0].ID)), nil
	}
	made, err := a.run(ctx, order)
	if err != nil {
		return a.perhaps(err), a.explain("make the machine", err)
	}
	fmt.Fprintf(c.Out, "instance %s was made\n", made.ID)
	return a.inAccount(cloud.Machine(made.ID)), nil
}

// perhaps returns what has to be known after a request to make a machine that EC2 did not answer: there may be one, in
// this account. After an answer that says no there is none, and the account may be the wrong one.
func (a *account) perhaps(err error) plugin.Result {
	if code(err) != "" {
		return plugin.Result{}
	}
	return a.inAccount(plugin.Result{})
}

// Confirm implements plugin.Provider.
func (p *Plugin) Confirm(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	a, err := p.account(c)
	if err != nil {
		return plugin.Result{}, err
	}
	if p.Reach == nil {
		return plugin.Result{}, errors.New("the plug-in aws was built without a way to reach machines")
	}
	if err := a.same(ctx); err != nil {
		return plugin.Result{}, err
	}
	began := time.Now()
	var why error
	for {
		found, err := a.list(ctx)
		if err != nil {
			return plugin.Result{}, a.explain("look at the machine", errors.Join(err, why))
		}
		if i := pick(found, cloud.KnownID(c)); i != nil {
			var r plugin.Result
			if r, why = a.confirm(ctx, *i); why == nil {
				return r, nil
			} else if !errors.Is(why, errNotYet) {
				return plugin.Result{}, a.mask(why)
			}
		} else if time.Since(began) >= p.settle() {
			return plugin.Result{}, fmt.Errorf("no instance in %s has the tag %s=%s; the machine may have been "+
				"deleted by hand", a.region, tagName, c.Tag)
		}
		if err := cloud.Pause(ctx, p.poll()); err != nil {
			return plugin.Result{}, a.mask(errors.Join(err, why))
		}
	}
}

// pick returns the instance with the known id, else the oldest that is there, else the last that was.
func pick(found []ec2.Instance, id string) (picked *ec2.Instance) {
	for n := range found {
		i := &found[n]
		switch {
		case i.ID == id:
			return i
		case picked == nil || gone(*picked):
			picked = i
		}
	}
	return picked
}

// errNotYet is the mark of an error that may pass while Confirm waits.
var errNotYet = errors.New("not yet")

type notYet struct{ error }

func (n notYet) Unwrap() []error { return []error{n.error, errNotYet} }

// confirm looks at a machine once.
func (a *account) confirm(ctx context.Context, i ec2.Instance) (plugin.Result, error) {
	id, state := i.ID, i.State
	switch {
	case state == ec2.Pending:
		return plugin.Result{}, notYet{fmt.Errorf("instance %s is pending", id)}
	case state != ec2.Running:
		return plugin.Result{}, fmt.Errorf("instance %s is %s, and should be running%s", id, state, reasonOf(i))
	case i.Private == "":
		return plugin.Result{}, notYet{fmt.Errorf("instance %s has no address", id)}
	}
	bind, access := i.Private, i.Public
	if access == "" {
		access = bind
	}
	keys, err := a.plugin.Reach(ctx, a.call, access)
	if plugin.IsRefused(err) {
		return plugin.Result{}, err
	} else if err != nil {
		return plugin.Result{}, notYet{fmt.Errorf("instance %s runs, but cannot be reached over SSH at %s: %w; "+
			"the security groups must let port 22 in", id, access, err)}
	}
	return a.inAccount(cloud.Reached(id, access, bind, keys)), nil
}

// Delete implements plugin.Provider.
func (p *Plugin) Delete(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	a, err := p.account(c)
	if err != nil {
		return plugin.Result{}, err
	}
	if err := a.same(ctx); err != nil {
		return plugin.Result{}, err
	}
	for began := time.Now(); ; {
		found, err := a.find(ctx)
		if err != nil {
			return plugin.Result{}, a.explain("look for the machine", err)
		}
		if err := a.terminate(ctx, found); err != nil {
			return plugin.Result{}, a.explain("delete the machine", err)
		}
		// A create that was cut off a moment ago may have made a machine that EC2 does not list yet.
		if len(found) > 0 || cloud.KnownID(c) != "" || time.Since(began) >= p.settle() {
			return plugin.Result{}, nil
		}
		if err := cloud.Pause(ctx, p.poll()); err != nil {
			return plugin.Result{}, err
		}
	}
}

func (p *Plugin) poll() time.Duration {
	if p.Poll > 0 {
		return p.Poll
	}
	return 3 * time.Second
}

func (p *Plugin) settle() time.Duration {
	if p.Settle > 0 {
		return p.Settle
	}
	return 10 * time.Second
}
