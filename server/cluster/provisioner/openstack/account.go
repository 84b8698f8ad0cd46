package openstack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// tagName is the key of the metadata by which the machine of a node is found.
const tagName = "ordain_tag"

// account is the cloud as one call sees it.
type account struct {
	plugin   *Plugin
	call     plugin.Call
	client   *gophercloud.ProviderClient
	nova     *gophercloud.ServiceClient
	region   gophercloud.EndpointOpts
	project  string
	number   string // id of the project; "": the cloud does not say
	secret   string
	floating bool
}

// login gets a token of Keystone. Nothing but the fields of the provider counts.
func (p *Plugin) login(ctx context.Context, c plugin.Call) (*account, error) {
	f := cloud.Read(c)
	at := f.URL("openstack_auth_url")
	if at == nil {
		f.Need("openstack_auth_url")
	}
	a := &account{plugin: p, call: c, project: f.Need("openstack_tenant"), secret: f.Need("api_password")}
	user, domain := f.Need("api_user"), cmp.Or(f.Text("openstack_domain"), "Default")
	a.region.Region = f.Text("openstack_region")
	if on := f.Switch("floating_ip"); on != nil {
		a.floating = *on
	}
	verify := f.Switch("openstack_ssl_verify_peer")
	if c.Tag == "" {
		return nil, errors.New("the task has no tag to recognise its machine by")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	client, err := openstack.NewClient(keystone(at))
	if err != nil {
		return nil, a.explain("log in", err)
	}
	transport := p.Transport
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport)
	}
	transport = transport.Clone()
	if verify != nil && !*verify {
		if transport.TLSClientConfig == nil {
			transport.TLSClientConfig = &tls.Config{}
		}
		transport.TLSClientConfig.InsecureSkipVerify = true
	}
	client.HTTPClient = http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: sameHost}
	a.client = client
	err = openstack.AuthenticateV3(ctx, client, &tokens.AuthOptions{
		Username: user, Password: a.secret, DomainName: domain, AllowReauth: true,
		Scope: tokens.Scope{ProjectName: a.project, DomainName: domain},
	}, gophercloud.EndpointOpts{})
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
		a.close()
		return nil, a.mask(plugin.Refuse(fmt.Sprintf("there is no Keystone 3 at %s; correct the field "+
			"openstack_auth_url of provider %s", keystone(at), c.Provider.Name)))
	case err != nil:
		a.close()
		return nil, a.explain("log in at "+at.Host, err)
	}
	a.number = projectOf(client)
	if err := cloud.SameAccount(c, a.number); err != nil {
		a.close()
		return nil, a.mask(err)
	}
	if a.nova, err = openstack.NewComputeV2(client, a.region); err != nil {
		a.close()
		return nil, a.explain("find Nova in the catalogue of the cloud", err)
	}
	return a, nil
}

// projectOf returns the id of the project that a token is for: its name may go to another project.
func projectOf(client *gophercloud.ProviderClient) string {
	got, ok := client.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return ""
	}
	project, err := got.ExtractProject()
	if err != nil || project == nil {
		return ""
	}
	return project.ID
}

// inAccount adds the project to what is known of the machine.
func (a *account) inAccount(r plugin.Result) plugin.Result { return cloud.InAccount(r, a.number) }

// close ends the connections of the call: the next one may verify certificates in another way.
func (a *account) close() { a.client.HTTPClient.CloseIdleConnections() }

// sameHost keeps tokens at the host that they were made for.
func sameHost(r *http.Request, via []*http.Request) error {
	if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// keystone returns the address of version 3. Old provider files name the tokens of version 2, which no cloud has any
// more.
func keystone(u *url.URL) string {
	v3 := *u
	p := strings.TrimSuffix(strings.TrimSuffix(v3.Path, "/"), "/tokens")
	p = strings.TrimSuffix(p, "/auth")
	if last := path.Base(p); last == "v2.0" || last == "v3" {
		p = strings.TrimSuffix(p, "/"+last)
	}
	v3.Path, v3.RawPath = p+"/v3/", ""
	return v3.String()
}

var plainTag = regexp.MustCompile(`^[a-zA-Z0-9-]{1,128}$`)

// nameFor returns the name of the server, and the part of it that only this tag has.
func nameFor(c plugin.Call) (name, part string) {
	if part = c.Tag; !plainTag.MatchString(part) { // Nova takes the part for a regular expression
		sum := sha256.Sum256([]byte(c.Tag))
		part = hex.EncodeToString(sum[:16])
	}
	host, _, _ := strings.Cut(c.Node.Hostname, ".")
	if host == "" {
		host = "node"
	}
	return host[:min(len(host), 63)] + "-" + part, part
}

// find returns the servers with the tag of the call that are not gone or going, and the one whose id is known; the
// oldest first.
func (a *account) find(ctx context.Context) (out []servers.Server, err error) {
	_, part := nameFor(a.call)
	pages, err := servers.List(a.nova, servers.ListOpts{Name: part}).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	all, err := servers.ExtractServers(pages)
	if err != nil {
		return nil, err
	}
	id := cloud.KnownID(a.call)
	isKnown := func(s servers.Server) bool { return s.ID == id }
	if id != "" && !slices.ContainsFunc(all, isKnown) {
		known, err := servers.Get(ctx, a.nova, url.PathEscape(id)).Extract()
		switch {
		case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, *known) // somebody renamed it
		}
	}
	for _, s := range all {
		other := s.Metadata[tagName]
		if s.ID == id && other != "" && other != a.call.Tag {
			return nil, plugin.Refuse(fmt.Sprintf("server %s has the metadata %s=%s, so it is the machine of "+
				"another node, not of this one (%s); correct the metadata, or delete the server by hand",
				id, tagName, other, a.call.Tag))
		}
		if (other == a.call.Tag || s.ID == id) && !gone(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(x, y servers.Server) int {
		return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
	})
	return out, nil
}

func gone(s servers.Server) bool {
	return s.Status == "DELETED" || s.Status == "SOFT_DELETED" || s.TaskState == "deleting"
}

// remove deletes a server, and returns once Nova says that it is gone or going.
func (a *account) remove(ctx context.Context, s servers.Server) error {
	for {
		err := servers.Delete(ctx, a.nova, s.ID).ExtractErr()
		if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) &&
			!gophercloud.ResponseCodeIs(err, http.StatusConflict) { // a conflict passes when Nova did what it is at
			return err
		}
		now, err := servers.Get(ctx, a.nova, s.ID).Extract()
		if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			break
		} else if err != nil {
			return err
		}
		if gone(*now) {
			break
		}
		if err := cloud.Pause(ctx, a.plugin.poll()); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.call.Out, "server %s is deleted\n", s.ID)
	return nil
}

// addresses returns the fixed and the floating address of version 4.
func addresses(s servers.Server) (fixed, floating string) {
	var networks []string
	for name := range s.Addresses {
		networks = append(networks, name)
	}
	slices.Sort(networks)
	for _, name := range networks {
		list, _ := s.Addresses[name].([]any)
		for _, item := range list {
			one, _ := item.(map[string]any)
			address, _ := one["addr"].(string)
			if version, _ := one["version"].(float64); version != 4 {
				continue
			}
			if one["OS-EXT-IPS:type"] == "floating" {
				floating = cmp.Or(floating, address)
			} else {
				fixed = cmp.Or(fixed, address)
			}
		}
	}
	return fixed, floating
}
