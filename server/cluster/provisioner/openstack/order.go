package openstack

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// maxUserData is what Nova takes, before it is encoded.
const maxUserData = 48 << 10

// orderFor reads the fields that describe a machine.
func orderFor(c plugin.Call) (keypairs.CreateOptsExt, error) {
	f := cloud.Read(c)
	image, flavor := f.Image()
	name, _ := nameFor(c)
	o := servers.CreateOpts{
		Name: name, ImageRef: image, FlavorRef: flavor, SecurityGroups: f.List("security_groups"),
		AvailabilityZone: f.Text("availability_zone"), Metadata: map[string]string{tagName: c.Tag},
	}
	if network := f.Text("openstack_network"); network != "" {
		if _, err := uuid.Parse(network); err != nil {
			f.Refuse("openstack_network", "must be the id of a network")
		}
		o.Networks = []servers.Network{{UUID: network}}
	}
	for key, value := range map[string]string{
		"ordain_cluster": c.Cluster.Name, "ordain_owner": c.Cluster.Owner, "ordain_environment": c.Cluster.Environment,
	} {
		if value != "" {
			o.Metadata[key] = value[:min(len(value), 255)]
		}
	}
	if resource := f.Text("user_data_resource"); resource != "" && f.Err() == nil {
		data, err := userData(c, resource)
		if err != nil {
			f.Refuse("user_data_resource", "names no file that can be used: "+err.Error())
		}
		o.UserData = data
	}
	f.SSHKey()
	return keypairs.CreateOptsExt{CreateOptsBuilder: o, KeyName: f.Need("ssh_keypair")}, f.Err()
}

func userData(c plugin.Call, resource string) ([]byte, error) {
	path, err := c.Files.Path("user_data", resource)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxUserData+1))
	if len(data) > maxUserData {
		return nil, fmt.Errorf("it is larger than %d bytes", maxUserData)
	}
	return data, err
}

// complete turns the names of the image and of the flavor into ids.
func (a *account) complete(ctx context.Context, o *keypairs.CreateOptsExt) error {
	order := o.CreateOptsBuilder.(servers.CreateOpts)
	if _, err := uuid.Parse(order.ImageRef); err != nil {
		if order.ImageRef, err = a.imageNamed(ctx, order.ImageRef); err != nil {
			return err
		}
	}
	pages, err := flavors.ListDetail(a.nova, flavors.ListOpts{AccessType: flavors.AllAccess}).AllPages(ctx)
	if err != nil {
		return err
	}
	list, err := flavors.ExtractFlavors(pages)
	if err != nil {
		return err
	}
	id := ""
	for _, flavor := range list {
		if flavor.ID == order.FlavorRef || (id == "" && flavor.Name == order.FlavorRef) {
			id = flavor.ID
		}
	}
	if id == "" {
		return plugin.Refuse(fmt.Sprintf("flavor %s of hardware type %s is not in the cloud of provider %s; "+
			"give the hardware type another flavor for this provider", order.FlavorRef, a.call.Node.HardwareType,
			a.call.Provider.Name))
	}
	order.FlavorRef = id
	o.CreateOptsBuilder = order
	return nil
}

func (a *account) imageNamed(ctx context.Context, name string) (string, error) {
	glance, err := openstack.NewImageV2(a.client, a.region)
	if err != nil {
		return "", err
	}
	pages, err := images.List(glance, images.ListOpts{Name: name, Status: images.ImageStatusActive}).AllPages(ctx)
	if err != nil {
		return "", err
	}
	list, err := images.ExtractImages(pages)
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return "", a.imageGone()
	case len(list) > 1:
		return "", plugin.Refuse(fmt.Sprintf("the cloud of provider %s has %d images with the name %s; "+
			"give image type %s the id of one of them", a.call.Provider.Name, len(list), name, a.call.Node.ImageType))
	}
	return list[0].ID, nil
}

// imageGone is the refusal of an image that the cloud does not have.
func (a *account) imageGone() error {
	n := a.call.Node
	return plugin.Refuse(fmt.Sprintf("image %s of image type %s is not in the cloud of provider %s; "+
		"give the image type another image for this provider", n.Image, n.ImageType, a.call.Provider.Name))
}

// make asks Nova for the server.
func (a *account) make(ctx context.Context, o keypairs.CreateOptsExt) error {
	_, err := servers.Create(ctx, a.nova, o, nil).Extract()
	return err
}
