package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

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
	o := ec2.Options{
		Region: a.region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: user, SecretAccessKey: a.secret, Source: "the provider's fields"}, nil
		}),
		HTTPClient: &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: noRedirect},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = 3, 5*time.Second
		}),
	}
	if endpoint != nil {
		o.BaseEndpoint = aws.String(endpoint.String())
	}
	a.ec2 = ec2.New(o)
	return a, nil
}

// noRedirect keeps signed requests at the host that they were made for.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// list returns the instances with the tag of the call, and the one whose id is known, the oldest first. EC2 lists an
// instance for about an hour after it was terminated.
func (a *account) list(ctx context.Context) ([]types.Instance, error) {
	found, err := a.describe(ctx, "tag:"+tagName, a.call.Tag)
	if err != nil {
		return nil, err
	}
	id := cloud.KnownID(a.call)
	isKnown := func(i types.Instance) bool { return text(i.InstanceId) == id }
	if id != "" && !slices.ContainsFunc(found, isKnown) {
		known, err := a.describe(ctx, "instance-id", id)
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
	slices.SortFunc(found, func(x, y types.Instance) int {
		return cmp.Or(
			aws.ToTime(x.LaunchTime).Compare(aws.ToTime(y.LaunchTime)),
			cmp.Compare(text(x.InstanceId), text(y.InstanceId)),
		)
	})
	return found, nil
}

// find returns those that are neither gone nor going.
func (a *account) find(ctx context.Context) ([]types.Instance, error) {
	found, err := a.list(ctx)
	return slices.DeleteFunc(found, gone), err
}

// describe returns the instances that match a filter. A filter has no match where an id would be an error.
func (a *account) describe(ctx context.Context, filter, value string) (out []types.Instance, err error) {
	pages := ec2.NewDescribeInstancesPaginator(a.ec2, &ec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String(filter), Values: []string{value}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			out = append(out, r.Instances...)
		}
	}
	return out, nil
}

// terminate deletes instances, and returns once EC2 says that they are gone or going.
func (a *account) terminate(ctx context.Context, instances []types.Instance) error {
	if len(instances) == 0 {
		return nil
	}
	var ids []string
	for _, i := range instances {
		ids = append(ids, text(i.InstanceId))
	}
	for {
		out, err := a.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
		if code(err) == "InvalidInstanceID.NotFound" {
			return nil // it went between the look and this
		} else if err != nil {
			return err
		}
		ids = ids[:0]
		for _, change := range out.TerminatingInstances {
			if change.CurrentState == nil || !going(change.CurrentState.Name) {
				ids = append(ids, text(change.InstanceId))
			} else {
				fmt.Fprintf(a.call.Out, "instance %s is deleted\n", text(change.InstanceId))
			}
		}
		if len(ids) == 0 {
			return nil
		}
		if err := cloud.Pause(ctx, a.plugin.poll()); err != nil {
			return err
		}
	}
}

func text(s *string) string { return aws.ToString(s) }

func going(s types.InstanceStateName) bool {
	return s == types.InstanceStateNameShuttingDown || s == types.InstanceStateNameTerminated
}

func gone(i types.Instance) bool { return going(stateOf(i)) }

func stateOf(i types.Instance) types.InstanceStateName {
	if i.State == nil {
		return types.InstanceStateNamePending
	}
	return i.State.Name
}

// reasonOf returns why an instance is in its state, as a clause, or "".
func reasonOf(i types.Instance) string {
	if i.StateReason == nil || text(i.StateReason.Message) == "" {
		return ""
	}
	return ": " + text(i.StateReason.Message)
}

func tagOf(i types.Instance) string {
	for _, t := range i.Tags {
		if text(t.Key) == tagName {
			return text(t.Value)
		}
	}
	return ""
}
