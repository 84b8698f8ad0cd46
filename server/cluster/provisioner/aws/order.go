package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// order is the machine that a task asks for.
type order struct {
	run *ec2.RunInstancesInput
	// The root volume is named by the image, so it is added before the request is sent.
	rootSize    int32
	deleteOnEnd *bool
}

// orderFor reads the fields that describe a machine.
func orderFor(c plugin.Call) (order, error) {
	f := cloud.Read(c)
	image, flavor := f.Image()
	run := &ec2.RunInstancesInput{
		MinCount:          aws.Int32(1),
		MaxCount:          aws.Int32(1),
		ImageId:           aws.String(image),
		InstanceType:      types.InstanceType(flavor),
		KeyName:           aws.String(f.Need("ssh_keypair")),
		TagSpecifications: tags(c),
	}
	f.SSHKey()
	network(f, run)
	placement := types.Placement{}
	if zone := f.Text("availability_zone"); zone != "" {
		placement.AvailabilityZone = aws.String(zone)
	}
	if group := f.Text("placement_group"); group != "" {
		placement.GroupName = aws.String(group)
	}
	if alone := f.Switch("dedicated_instance"); alone != nil && *alone {
		placement.Tenancy = types.TenancyDedicated
	}
	if placement != (types.Placement{}) {
		run.Placement = &placement
	}
	if profile := f.Text("iam_instance_profile"); strings.HasPrefix(profile, "arn:") {
		run.IamInstanceProfile = &types.IamInstanceProfileSpecification{Arn: aws.String(profile)}
	} else if profile != "" {
		run.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String(profile)}
	}
	o := order{run: run, rootSize: f.Size("aws_root_ebs_size", 65536)}
	if o.rootSize == 0 { // older provider files have the shorter names
		o.rootSize = f.Size("aws_ebs_size", 65536)
	}
	if o.deleteOnEnd = f.Switch("aws_root_ebs_delete_on_term"); o.deleteOnEnd == nil {
		o.deleteOnEnd = f.Switch("aws_ebs_delete_on_term")
	}
	return o, f.Err()
}

// network sets the subnet and the security groups. EC2 takes names of groups in the default VPC only.
func network(f *cloud.Fields, run *ec2.RunInstancesInput) {
	subnet, ids, names := f.Text("subnet_id"), f.List("security_group_ids"), f.List("security_groups")
	switch {
	case subnet != "" && len(ids) == 0:
		f.Refuse("security_group_ids", "is not set; with subnet_id, groups are named by their ids, such as sg-0a1b2c3d")
	case subnet != "":
		run.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0), SubnetId: aws.String(subnet), Groups: ids,
			AssociatePublicIpAddress: f.Switch("associate_public_ip"), DeleteOnTermination: aws.Bool(true),
		}}
	case len(ids) > 0:
		run.SecurityGroupIds = ids
	case len(names) > 0:
		run.SecurityGroups = names
	default:
		f.Refuse("security_groups", "is not set; set it, or security_group_ids and subnet_id")
	}
}

// tags are put on the instance and its volumes in the request that makes them.
func tags(c plugin.Call) (out []types.TagSpecification) {
	var list []types.Tag
	for _, t := range [][2]string{
		{tagName, c.Tag}, {"Name", c.Node.Hostname}, {"ordain:cluster", c.Cluster.Name},
		{"ordain:owner", c.Cluster.Owner}, {"ordain:environment", c.Cluster.Environment},
	} {
		if t[1] != "" {
			list = append(list, types.Tag{Key: aws.String(t[0]), Value: aws.String(t[1])})
		}
	}
	for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume} {
		out = append(out, types.TagSpecification{ResourceType: kind, Tags: list})
	}
	return out
}

// run makes the machine. EC2 remembers a client token for a day after its instance ended, so the token of an instance
// that is gone gives that instance again: then the next token counts.
func (a *account) run(ctx context.Context, o order) (types.Instance, error) {
	if err := a.root(ctx, o); err != nil {
		return types.Instance{}, err
	}
	for turn := range 10 {
		o.run.ClientToken = aws.String(clientToken(a.call, turn))
		made, err := a.runOnce(ctx, o.run)
		if err != nil || !gone(made) {
			return made, err
		}
	}
	return types.Instance{}, errors.New("EC2 answers with instances that were deleted before; try again later")
}

func (a *account) runOnce(ctx context.Context, in *ec2.RunInstancesInput) (types.Instance, error) {
	out, err := a.ec2.RunInstances(ctx, in)
	if code(err) == "IdempotentParameterMismatch" {
		// The fields changed since an attempt that was cut off. What that attempt made counts.
		found, err := a.describe(ctx, "client-token", *in.ClientToken)
		if err != nil {
			return types.Instance{}, err
		}
		if len(found) == 0 {
			return types.Instance{}, errors.New("an earlier attempt asked for another machine, which EC2 does not " +
				"list yet")
		}
		return found[0], nil
	} else if err != nil {
		return types.Instance{}, err
	}
	if len(out.Instances) != 1 || text(out.Instances[0].InstanceId) == "" {
		return types.Instance{}, fmt.Errorf("EC2 answered with %d instances, and was asked for one", len(out.Instances))
	}
	return out.Instances[0], nil
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

// root sets the size of the root volume. It is never smaller than the image.
func (a *account) root(ctx context.Context, o order) error {
	if o.rootSize == 0 && o.deleteOnEnd == nil {
		return nil
	}
	image := *o.run.ImageId
	out, err := a.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{image}})
	if err != nil {
		return err
	}
	if len(out.Images) == 0 {
		return a.imageGone()
	}
	for _, m := range out.Images[0].BlockDeviceMappings {
		if m.Ebs == nil || text(m.DeviceName) != text(out.Images[0].RootDeviceName) {
			continue
		}
		ebs := &types.EbsBlockDevice{DeleteOnTermination: o.deleteOnEnd}
		if o.rootSize > 0 {
			ebs.VolumeSize = aws.Int32(max(o.rootSize, aws.ToInt32(m.Ebs.VolumeSize)))
		}
		o.run.BlockDeviceMappings = []types.BlockDeviceMapping{{DeviceName: m.DeviceName, Ebs: ebs}}
	}
	return nil
}
