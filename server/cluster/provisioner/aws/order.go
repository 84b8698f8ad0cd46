package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/server/cluster/provisioner/aws/ec2"
	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// orderFor reads the fields that describe a machine.
func orderFor(c plugin.Call) (ec2.Order, error) {
	f := cloud.Read(c)
	o := ec2.Order{KeyName: f.Need("ssh_keypair"), Tags: tags(c)}
	o.Image, o.Type = f.Image()
	f.SSHKey()
	network(f, &o)
	o.Zone, o.PlacementGroup = f.Text("availability_zone"), f.Text("placement_group")
	if alone := f.Switch("dedicated_instance"); alone != nil {
		o.Dedicated = *alone
	}
	if profile := f.Text("iam_instance_profile"); strings.HasPrefix(profile, "arn:") {
		o.ProfileARN = profile
	} else {
		o.Profile = profile
	}
	if o.RootSize = f.Size("aws_root_ebs_size", 65536); o.RootSize == 0 { // older provider files have the shorter names
		o.RootSize = f.Size("aws_ebs_size", 65536)
	}
	if o.RootDeleteOnEnd = f.Switch("aws_root_ebs_delete_on_term"); o.RootDeleteOnEnd == nil {
		o.RootDeleteOnEnd = f.Switch("aws_ebs_delete_on_term")
	}
	return o, f.Err()
}

// network sets the subnet and the security groups. EC2 takes names of groups in the default VPC only.
func network(f *cloud.Fields, o *ec2.Order) {
	subnet, ids, names := f.Text("subnet_id"), f.List("security_group_ids"), f.List("security_groups")
	switch {
	case subnet != "" && len(ids) == 0:
		f.Refuse("security_group_ids", "is not set; with subnet_id, groups are named by their ids, such as sg-0a1b2c3d")
	case subnet != "":
		o.Subnet, o.GroupIDs, o.PublicIP = subnet, ids, f.Switch("associate_public_ip")
	case len(ids) > 0:
		o.GroupIDs = ids
	case len(names) > 0:
		o.Groups = names
	default:
		f.Refuse("security_groups", "is not set; set it, or security_group_ids and subnet_id")
	}
}

// tags are put on the instance and its volumes in the request that makes them.
func tags(c plugin.Call) (list []ec2.Tag) {
	for _, t := range []ec2.Tag{
		{Key: tagName, Value: c.Tag}, {Key: "Name", Value: c.Node.Hostname},
		{Key: "ordain:cluster", Value: c.Cluster.Name}, {Key: "ordain:owner", Value: c.Cluster.Owner},
		{Key: "ordain:environment", Value: c.Cluster.Environment},
	} {
		if t.Value != "" {
			list = append(list, t)
		}
	}
	return list
}

// run makes the machine. EC2 remembers a client token for a day after its instance ended, so the token of an instance
// that is gone gives that instance again: then the next token counts.
func (a *account) run(ctx context.Context, o ec2.Order) (ec2.Instance, error) {
	if err := a.root(ctx, &o); err != nil {
		return ec2.Instance{}, err
	}
	for turn := range 10 {
		o.Token = clientToken(a.call, turn)
		made, err := a.runOnce(ctx, o)
		if err != nil || !gone(made) {
			return made, err
		}
	}
	return ec2.Instance{}, errors.New("EC2 answers with instances that were deleted before; try again later")
}

func (a *account) runOnce(ctx context.Context, o ec2.Order) (ec2.Instance, error) {
	made, err := a.ec2.Run(ctx, o)
	if code(err) != "IdempotentParameterMismatch" {
		return made, err
	}
	// The fields changed since an attempt that was cut off. What that attempt made counts.
	found, err := a.ec2.Instances(ctx, "client-token", o.Token)
	if err != nil {
		return ec2.Instance{}, err
	}
	if len(found) == 0 {
		return ec2.Instance{}, errors.New("an earlier attempt asked for another machine, which EC2 does not list yet")
	}
	return found[0], nil
}

// clientToken is the same for every attempt to make one machine. What replaces a machine is another one.
func clientToken(c plugin.Call, turn int) string {
	attempt := 0
	if c.Replace {
		attempt = c.Attempt
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "ordain %q %d %d", c.Tag, attempt, turn))
	return hex.EncodeToString(sum[:]) // 64 characters, as many as EC2 takes
}

// root names the root volume, whose name only the image knows. It is never smaller than the image.
func (a *account) root(ctx context.Context, o *ec2.Order) error {
	if o.RootSize == 0 && o.RootDeleteOnEnd == nil {
		return nil
	}
	images, err := a.ec2.Images(ctx, o.Image)
	if err != nil {
		return err
	}
	if len(images) == 0 {
		return a.imageGone()
	}
	for _, v := range images[0].Volumes {
		if v.EBS == nil || v.Device != images[0].Root {
			continue
		}
		o.RootDevice = v.Device
		if o.RootSize > 0 {
			o.RootSize = max(o.RootSize, v.EBS.Size)
		}
	}
	return nil
}
