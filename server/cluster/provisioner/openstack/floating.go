package openstack

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// A floating address has the tag as its description, so that it is found when its server is gone.
func (a *account) description() string { return "ordain " + a.call.Tag }

// floats returns the floating addresses with the tag.
func (a *account) floats(ctx context.Context) (*gophercloud.ServiceClient, []floatingips.FloatingIP, error) {
	neutron, err := openstack.NewNetworkV2(a.client, a.region)
	if err != nil {
		return nil, nil, err
	}
	pages, err := floatingips.List(neutron, floatingips.ListOpts{Description: a.description()}).AllPages(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err := floatingips.ExtractFloatingIPs(pages)
	var ours []floatingips.FloatingIP
	for _, f := range list { // not every Neutron filters by the description
		if f.Description == a.description() {
			ours = append(ours, f)
		}
	}
	return neutron, ours, err
}

// float gives a server a floating address of the first network outside, unless it has one.
func (a *account) float(ctx context.Context, s servers.Server) (string, error) {
	neutron, have, err := a.floats(ctx)
	if err != nil {
		return "", err
	}
	pages, err := ports.List(neutron, ports.ListOpts{DeviceID: s.ID}).AllPages(ctx)
	if err != nil {
		return "", err
	}
	list, err := ports.ExtractPorts(pages)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", notYet{fmt.Errorf("server %s has no port", s.ID)}
	}
	port := list[0].ID
	if len(have) > 0 {
		f := have[0]
		if f.PortID == port {
			return f.FloatingIP, nil
		}
		_, err := floatingips.Update(ctx, neutron, f.ID, floatingips.UpdateOpts{PortID: &port}).Extract()
		return f.FloatingIP, err
	}
	outside := true
	pages, err = networks.List(neutron, external.ListOptsExt{
		ListOptsBuilder: networks.ListOpts{}, External: &outside,
	}).AllPages(ctx)
	if err != nil {
		return "", err
	}
	nets, err := networks.ExtractNetworks(pages)
	if err != nil {
		return "", err
	}
	if len(nets) == 0 {
		return "", plugin.Refuse(fmt.Sprintf("the cloud of provider %s has no network with floating addresses; "+
			"switch its field floating_ip off", a.call.Provider.Name))
	}
	made, err := floatingips.Create(ctx, neutron, floatingips.CreateOpts{
		FloatingNetworkID: nets[0].ID, PortID: port, Description: a.description(),
	}).Extract()
	if err != nil {
		return "", err
	}
	return made.FloatingIP, nil
}

// release gives the floating addresses with the tag back.
func (a *account) release(ctx context.Context) error {
	neutron, have, err := a.floats(ctx)
	if err != nil {
		return err
	}
	for _, f := range have {
		err := floatingips.Delete(ctx, neutron, f.ID).ExtractErr()
		if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return err
		}
	}
	return nil
}
