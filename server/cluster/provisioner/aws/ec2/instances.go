package ec2

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// State of an instance.
type State string

// The states that matter here; there are also stopping and stopped.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Terminated   State = "terminated"
)

// Instance is a machine, as EC2 describes it.
type Instance struct {
	ID       string    `xml:"instanceId"`
	State    State     `xml:"instanceState>name"`
	Reason   string    `xml:"stateReason>message"` // why it is in this state
	Public   string    `xml:"ipAddress"`           // "" when it has none
	Private  string    `xml:"privateIpAddress"`
	Launched time.Time `xml:"launchTime"`
	Tags     []Tag     `xml:"tagSet>item"`
}

// Tag is a label.
type Tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// Instances returns the instances that match a filter, such as tag:NAME or instance-id. A filter has no match where an
// id would be an error.
func (c *Client) Instances(ctx context.Context, filter, value string) (found []Instance, err error) {
	in := url.Values{"Filter.1.Name": {filter}, "Filter.1.Value.1": {value}}
	for {
		var page struct {
			Instances []Instance `xml:"reservationSet>item>instancesSet>item"`
			Next      string     `xml:"nextToken"`
		}
		if err := c.act(ctx, "DescribeInstances", in, &page); err != nil {
			return nil, err
		}
		found = append(found, page.Instances...)
		if page.Next == "" || page.Next == in.Get("NextToken") {
			return found, nil
		}
		in.Set("NextToken", page.Next)
	}
}

// Terminate deletes instances, and returns the state of each afterwards.
func (c *Client) Terminate(ctx context.Context, ids []string) (map[string]State, error) {
	in := url.Values{}
	list(in, "InstanceId", ids)
	var out struct {
		Changes []struct {
			ID    string `xml:"instanceId"`
			State State  `xml:"currentState>name"`
		} `xml:"instancesSet>item"`
	}
	if err := c.act(ctx, "TerminateInstances", in, &out); err != nil {
		return nil, err
	}
	states := map[string]State{}
	for _, change := range out.Changes {
		states[change.ID] = change.State
	}
	return states, nil
}

// Image is what a root volume is made from.
type Image struct {
	Root    string   `xml:"rootDeviceName"`
	Volumes []Volume `xml:"blockDeviceMapping>item"`
}

// Volume is a disk of an image; Size is in GiB, and 0 for one that is not in EBS.
type Volume struct {
	Device string `xml:"deviceName"`
	EBS    *struct {
		Size int32 `xml:"volumeSize"`
	} `xml:"ebs"`
}

// Images returns the images with an id: one, or none.
func (c *Client) Images(ctx context.Context, id string) ([]Image, error) {
	var out struct {
		Images []Image `xml:"imagesSet>item"`
	}
	err := c.act(ctx, "DescribeImages", url.Values{"ImageId.1": {id}}, &out)
	return out.Images, err
}

// Order is the instance that Run makes. What is empty is left to EC2.
type Order struct {
	Image, Type, KeyName string
	// Token makes EC2 answer with the same instance when the order is sent again.
	Token string
	Tags  []Tag // of the instance and its volumes

	Zone, PlacementGroup string
	Dedicated            bool   // no instance of another account on the same hardware
	Profile              string // of IAM, by name
	ProfileARN           string // or by its ARN

	// Subnet needs the ids of groups. Without it the instance is in the default VPC.
	Subnet   string
	GroupIDs []string
	Groups   []string // by name, in the default VPC only
	PublicIP *bool    // nil: as the subnet says

	RootDevice      string // set when one of the next two is
	RootSize        int32  // in GiB; 0: as the image says
	RootDeleteOnEnd *bool  // nil: as the image says
}

// Run makes one instance.
func (c *Client) Run(ctx context.Context, o Order) (Instance, error) {
	var out struct {
		Instances []Instance `xml:"instancesSet>item"`
	}
	if err := c.act(ctx, "RunInstances", o.values(), &out); err != nil {
		return Instance{}, err
	}
	if len(out.Instances) != 1 || out.Instances[0].ID == "" {
		return Instance{}, fmt.Errorf("EC2 answered with %d instances, and was asked for one", len(out.Instances))
	}
	return out.Instances[0], nil
}

// values returns the order as parameters.
func (o Order) values() url.Values {
	in := url.Values{"MinCount": {"1"}, "MaxCount": {"1"}}
	set := func(name, value string) {
		if value != "" {
			in.Set(name, value)
		}
	}
	flag := func(name string, value *bool) {
		if value != nil {
			in.Set(name, strconv.FormatBool(*value))
		}
	}
	set("ImageId", o.Image)
	set("InstanceType", o.Type)
	set("KeyName", o.KeyName)
	set("ClientToken", o.Token)
	set("Placement.AvailabilityZone", o.Zone)
	set("Placement.GroupName", o.PlacementGroup)
	if o.Dedicated {
		set("Placement.Tenancy", "dedicated")
	}
	set("IamInstanceProfile.Name", o.Profile)
	set("IamInstanceProfile.Arn", o.ProfileARN)
	for i, kind := range []string{"instance", "volume"} {
		spec := fmt.Sprintf("TagSpecification.%d.", i+1)
		set(spec+"ResourceType", kind)
		for n, tag := range o.Tags {
			in.Set(fmt.Sprintf("%sTag.%d.Key", spec, n+1), tag.Key)
			in.Set(fmt.Sprintf("%sTag.%d.Value", spec, n+1), tag.Value)
		}
	}
	if o.Subnet != "" {
		const card = "NetworkInterface.1."
		set(card+"DeviceIndex", "0")
		set(card+"SubnetId", o.Subnet)
		set(card+"DeleteOnTermination", "true")
		flag(card+"AssociatePublicIpAddress", o.PublicIP)
		list(in, card+"SecurityGroupId", o.GroupIDs)
	} else {
		list(in, "SecurityGroupId", o.GroupIDs)
		list(in, "SecurityGroup", o.Groups)
	}
	if o.RootDevice != "" {
		const disk = "BlockDeviceMapping.1."
		set(disk+"DeviceName", o.RootDevice)
		flag(disk+"Ebs.DeleteOnTermination", o.RootDeleteOnEnd)
		if o.RootSize > 0 {
			set(disk+"Ebs.VolumeSize", strconv.Itoa(int(o.RootSize)))
		}
	}
	return in
}

// list sets NAME.1, NAME.2 and so on.
func list(in url.Values, name string, values []string) {
	for i, value := range values {
		in.Set(fmt.Sprintf("%s.%d", name, i+1), value)
	}
}
