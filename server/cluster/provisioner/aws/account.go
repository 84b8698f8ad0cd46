package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"ordain.dev/ordain/server/cluster/provisioner/aws/ec2"
	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// tagName is the key of the tag by which the machine of a node is found.
const tagName = "ordain:tag"

// account is EC2 as one call sees it.
type account struct {
	plugin *Plugin
	call   plugin.Call
	ec2    *ec2.Client
	region string
	secret string
	custom bool   // another cloud that speaks the protocol of EC2
	number string // of the account; "": not known
}

var regionForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$`)

// account makes the client of a call.
func (p *Plugin) account(c plugin.Call) (*account, error) {
	f := cloud.Read(c)
	a := &account{plugin: p, call: c, region: f.Need("aws_region"), secret: f.Need("api_password")}
	user, endpoint := f.Need("api_user"), f.URL("endpoint")
	if a.region != "" && !regionForm.MatchString(a.region) {
		f.Refuse("aws_region", "must be the name of a region, such as us-east-1")
	}
	if c.Tag == "" {
		return nil, errors.New("the task has no tag to recognise its machine by")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	transport := p.Transport
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport)
	}
	o := ec2.Config{Region: a.region, Key: user, Secret: a.secret, Transport: transport}
	if endpoint != nil {
		o.Endpoint, a.custom = endpoint.String(), true
	}
	a.ec2 = ec2.New(o)
	return a, nil
}

// same asks whose the access key is, and refuses the call if the machine was made in another account.
func (a *account) same(ctx context.Context) error {
	number, err := a.ec2.Account(ctx)
	if err != nil && !a.nobodyToAsk(err) {
		return a.explain("ask which account the access key belongs to", err)
	}
	a.number = number
	return a.maskOrNil(cloud.SameAccount(a.call, number))
}

// nobodyToAsk reports whether an error only says that a cloud has no STS. One that had it when the machine was made is
// asked again.
func (a *account) nobodyToAsk(err error) bool {
	var said *ec2.Error
	return a.custom && cloud.KnownAccount(a.call) == "" && errors.As(err, &said) &&
		(said.Status/100 != 5 || said.Status == http.StatusNotImplemented)
}

// inAccount adds the account to what is known of the machine.
func (a *account) inAccount(r plugin.Result) plugin.Result { return cloud.InAccount(r, a.number) }

// list returns the instances with the tag of the call, and the one whose id is known, the oldest first. EC2 lists an
// instance for about an hour after it was terminated.
func (a *account) list(ctx context.Context) ([]ec2.Instance, error) {
	found, err := a.ec2.Instances(ctx, "tag:"+tagName, a.call.Tag)
	if err != nil {
		return nil, err
	}
	id := cloud.KnownID(a.call)
	isKnown := func(i ec2.Instance) bool { return i.ID == id }
	if id != "" && !slices.ContainsFunc(found, isKnown) {
		known, err := a.ec2.Instances(ctx, "instance-id", id)
		if err != nil {
			return nil, err
		}
		for _, i := range known {
			// Somebody may have removed the tag. An instance with the tag of another node belongs to that node.
			if other := tagOf(i); other != "" {
				return nil, plugin.Refuse(fmt.Sprintf("instance %s has the tag %s=%s, so it is the machine of another "+
					"node, not of this one (%s); correct the tag, or delete the instance by hand", id, tagName, other,
					a.call.Tag))
			}
		}
		found = append(found, known...)
	}
	slices.SortFunc(found, func(x, y ec2.Instance) int {
		return cmp.Or(
			x.Launched.Compare(y.Launched),
			cmp.Compare(x.ID, y.ID),
		)
	})
	return found, nil
}

// find returns those that are neither gone nor going.
func (a *account) find(ctx context.Context) ([]ec2.Instance, error) {
	found, err := a.list(ctx)
	return slices.DeleteFunc(found, gone), err
}

// terminate deletes instances, and returns once EC2 says that they are gone or going.
func (a *account) terminate(ctx context.Context, instances []ec2.Instance) error {
	if len(instances) == 0 {
		return nil
	}
	var ids []string
	for _, i := range instances {
		ids = append(ids, i.ID)
	}
	for {
		states, err := a.ec2.Terminate(ctx, ids)
		if code(err) == "InvalidInstanceID.NotFound" {
			return nil // it went between the look and this
		} else if err != nil {
			return err
		}
		ids = slices.DeleteFunc(ids, func(id string) bool {
			state, answered := states[id]
			if answered && going(state) {
				fmt.Fprintf(a.call.Out, "instance %s is deleted\n", id)
			}
			return !answered || going(state)
		})
		if len(ids) == 0 {
			return nil
		}
		if err := cloud.Pause(ctx, a.plugin.poll()); err != nil {
			return err
		}
	}
}

func going(s ec2.State) bool { return s == ec2.ShuttingDown || s == ec2.Terminated }

func gone(i ec2.Instance) bool { return going(i.State) }

// reasonOf returns why an instance is in its state, as a clause, or "".
func reasonOf(i ec2.Instance) string {
	if i.Reason == "" {
		return ""
	}
	return ": " + i.Reason
}

func tagOf(i ec2.Instance) string {
	for _, t := range i.Tags {
		if t.Key == tagName {
			return t.Value
		}
	}
	return ""
}
