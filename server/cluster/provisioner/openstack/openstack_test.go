package openstack

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/cloudtest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// story is a cloud, a plug-in, and a node.
type story struct {
	*testing.T
	nova   *cloudtest.Nova
	door   *cloudtest.Door
	plugin *Plugin
	fields map[string]any
}

func begin(t *testing.T) *story {
	t.Helper()
	t.Parallel()
	s := &story{T: t, nova: cloudtest.StartNova(t), door: &cloudtest.Door{}}
	s.plugin = &Plugin{Reach: s.door.Reach, Poll: time.Millisecond}
	s.fields = map[string]any{
		"api_user": cloudtest.NovaUser, "api_password": cloudtest.NovaPassword,
		"openstack_tenant": cloudtest.NovaProject, "openstack_auth_url": s.nova.URL + "/identity/v2.0/tokens",
		"ssh_keypair": "team", "ssh_key_resource": "team", "security_groups": "default, web",
	}
	return s
}

func (s *story) call(tag string) plugin.Call {
	s.Helper()
	c := cloudtest.Call(s, tag, cloudtest.Fields(s, s.fields))
	c.Node.Image, c.Node.Flavor = cloudtest.NovaImage, cloudtest.NovaFlavor
	return c
}

// create returns the id of the machine.
func (s *story) create(c plugin.Call) string {
	s.Helper()
	r, err := s.plugin.Create(s.Context(), c)
	if err != nil {
		s.Fatal(err)
	}
	c.Node.Facts = r.Facts
	return cloud.KnownID(c)
}

// only checks that one server is there, and returns it.
func (s *story) only() cloudtest.Server {
	s.Helper()
	there := s.nova.Alive()
	if len(there) != 1 {
		s.Fatalf("there are %d servers, want one: %+v", len(there), there)
	}
	return there[0]
}

// mustRefuse checks that an error is a refusal with these words, and without the password.
func mustRefuse(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil || !plugin.IsRefused(err) {
		t.Fatalf("got %v, want a refusal", err)
	}
	mustSay(t, err, words...)
}

// mayPass checks that an error is none.
func mayPass(t *testing.T, err error, words ...string) {
	t.Helper()
	if plugin.IsRefused(err) {
		t.Fatalf("refused: %v", err)
	}
	mustSay(t, err, words...)
}

func mustSay(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one that says %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
	if strings.Contains(err.Error(), cloudtest.NovaPassword) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error tells a secret: %v", err)
	}
}

// A machine is made, builds for a while, boots for a while, and is deleted; twice does no harm.
func TestTheLifeOfAMachine(t *testing.T) {
	s := begin(t)
	s.fields["floating_ip"], s.fields["availability_zone"] = "true", "north"
	s.nova.Slow(4)
	c := s.call("ordain-1")
	id := s.create(c)
	m := s.only()
	if m.ID != id || m.Name != "shop7-1000-ordain-1" || m.Metadata[tagName] != "ordain-1" ||
		m.Metadata["ordain_cluster"] != "shop" || m.Zone != "north" ||
		!reflect.DeepEqual(m.Groups, []string{"default", "web"}) {
		t.Errorf("the server is %+v", m)
	}
	if again := s.create(c); again != id {
		t.Errorf("a second create returned %s, not %s", again, id)
	}

	s.door.Refuse = 2
	r, err := s.plugin.Confirm(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	access := r.Addresses["access_v4"]
	if !strings.HasPrefix(access, "192.0.2.") || r.Addresses["bind_v4"] != "10.0.0.7" {
		t.Errorf("addresses are %v", r.Addresses)
	}
	if string(r.Facts[cloud.ProviderID]) != `"`+id+`"` || string(r.Facts[cloud.HostKeys]) != `["ssh-ed25519 AAAA"]` {
		t.Errorf("facts are %s", r.Facts)
	}
	if asked := s.door.Asked(); len(asked) != 3 || asked[0] != access {
		t.Errorf("SSH was tried at %v", asked)
	}
	if n := s.nova.Floats(); n != 1 {
		t.Errorf("%d floating addresses are taken, want one", n)
	}

	c.Node.Facts = r.Facts
	for range 2 {
		if _, err := s.plugin.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if there := s.nova.Alive(); len(there) != 0 || s.nova.Floats() != 0 {
		t.Errorf("after delete there is %+v, and %d floating addresses", there, s.nova.Floats())
	}
	_, err = s.plugin.Confirm(t.Context(), c)
	mayPass(t, err, "ordain-1", "deleted by hand")
}

// Without floating addresses, the fixed one counts for both.
func TestFixedAddressOnly(t *testing.T) {
	s := begin(t)
	c := s.call("ordain-1")
	s.create(c)
	r, err := s.plugin.Confirm(t.Context(), c)
	if err != nil || r.Addresses["access_v4"] != "10.0.0.7" || r.Addresses["bind_v4"] != "10.0.0.7" {
		t.Errorf("got %v, %v", r.Addresses, err)
	}
}

// The provisioner dies right after Nova made the server. The next one finds it.
func TestKilledRightAfterCreate(t *testing.T) {
	s := begin(t)
	c := s.call("ordain-1")
	ctx, kill := context.WithCancel(t.Context())
	s.nova.CutAfterCreate(kill)
	if r, err := s.plugin.Create(ctx, c); err == nil {
		t.Fatalf("got %v from a plug-in that was killed", r)
	}
	made := s.only()
	if id := s.create(c); id != made.ID || s.only().ID != id {
		t.Errorf("the second attempt returned %s, and %s is there", id, made.ID)
	}
}

// Nova answers 500 although it made the server.
func TestErrorAfterCreate(t *testing.T) {
	s := begin(t)
	s.nova.FailAfterCreate()
	if id := s.create(s.call("ordain-1")); id != s.only().ID {
		t.Errorf("create returned %s, and %s is there", id, s.only().ID)
	}
}

// Another provisioner, which lost its lease, makes the same machine at the same moment. The older one stays.
func TestTwoAtOnce(t *testing.T) {
	s := begin(t)
	var other string
	made := make(chan struct{})
	s.nova.CutAfterCreate(func() {
		go func() { // the fake holds its lock here, so the other server comes right after ours
			other = s.nova.Add("shop7-1000-ordain-1", map[string]string{tagName: "ordain-1"})
			close(made)
		}()
	})
	s.create(s.call("ordain-1"))
	<-made
	id := s.create(s.call("ordain-1"))
	if id == other || s.only().ID != id {
		t.Errorf("%s stays, %s was returned, and the younger one was %s", s.only().ID, id, other)
	}
}

// What could not be confirmed is replaced; and a server that never came up is replaced by itself.
func TestReplace(t *testing.T) {
	s := begin(t)
	c := s.call("ordain-1")
	first := s.create(c)
	replace := c
	replace.Replace = true
	second := s.create(replace)
	if second == first || s.only().ID != second {
		t.Errorf("%s was replaced by %s, and %s is there", first, second, s.only().ID)
	}

	s.nova.Break("No valid host was found.")
	broken := s.create(replace)
	_, err := s.plugin.Confirm(t.Context(), c)
	mayPass(t, err, "ERROR", "No valid host was found.")
	s.nova.Break("")
	if id := s.create(c); id == broken || s.only().ID != id {
		t.Errorf("the broken server %s stayed", broken)
	}
}

// Machines of other nodes stay, whatever their names and the facts say.
func TestOtherMachinesStay(t *testing.T) {
	s := begin(t)
	theirs := s.nova.Add("shop7-1000-ordain-1", map[string]string{tagName: "ordain-12"})
	s.nova.Add("ordain-1", nil)
	c := s.call("ordain-1")
	if _, err := s.plugin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Node.Facts = cloud.Machine(theirs).Facts
	_, err := s.plugin.Delete(t.Context(), c)
	mustRefuse(t, err, theirs, "ordain-12")
	if n := len(s.nova.Alive()); n != 2 {
		t.Errorf("%d servers stayed, want two", n)
	}
}

// A tag that Nova would take for a regular expression is the tag of its own machine only.
func TestOddTag(t *testing.T) {
	s := begin(t)
	one := s.create(s.call("a.*/b"))
	if two := s.create(s.call(".*")); one == two {
		t.Error("two tags have one machine")
	}
	if again := s.create(s.call("a.*/b")); again != one {
		t.Errorf("the tag has %s and %s", one, again)
	}
}

// What people have to correct is refused, in words that name it.
func TestRefusals(t *testing.T) {
	s := begin(t)
	for name, test := range map[string]struct {
		fields map[string]any
		change func(*plugin.Call)
		says   []string
	}{
		"wrong password": {
			fields: map[string]any{"api_password": "hunter2-hunter2"}, says: []string{"api_password", "our-cloud"},
		},
		"wrong project": {fields: map[string]any{"openstack_tenant": "x"}, says: []string{"openstack_tenant"}},
		"no address":    {fields: map[string]any{"openstack_auth_url": nil}, says: []string{"openstack_auth_url"}},
		"odd address": {
			fields: map[string]any{"openstack_auth_url": "ftp://u:hunter2@x"}, says: []string{"openstack_auth_url"},
		},
		"no Keystone": {
			fields: map[string]any{"openstack_auth_url": s.nova.URL + "/other"}, says: []string{"Keystone 3"},
		},
		"no region":   {fields: map[string]any{"openstack_region": "mars"}, says: []string{"openstack_region"}},
		"no key pair": {fields: map[string]any{"ssh_keypair": "lost"}, says: []string{"field ssh_keypair"}},
		"no SSH key": {
			fields: map[string]any{"ssh_key_resource": "lost"},
			says:   []string{"ssh_key_resource", "team"},
		},
		"no group": {fields: map[string]any{"security_groups": "lost"}, says: []string{"field security_groups"}},
		"no zone": {
			fields: map[string]any{"availability_zone": "mars"},
			says:   []string{"field availability_zone"},
		},
		"odd network":  {fields: map[string]any{"openstack_network": "inside"}, says: []string{"openstack_network"}},
		"no user data": {fields: map[string]any{"user_data_resource": "lost"}, says: []string{"user_data_resource"}},
		"image gone": {
			change: func(c *plugin.Call) { c.Node.Image = "old" },
			says:   []string{"image type debian", "our-cloud"},
		},
		"image id gone": {
			change: func(c *plugin.Call) { c.Node.Image = "11111111-1111-1111-1111-111111111111" },
			says:   []string{"image type debian", "our-cloud"},
		},
		"two images": {
			change: func(c *plugin.Call) { c.Node.Image = "twins" },
			says:   []string{"2 images", "debian"},
		},
		"no flavor": {
			change: func(c *plugin.Call) { c.Node.Flavor = "huge" },
			says:   []string{"huge", "hardware type small"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fields := map[string]any{}
			for _, from := range []map[string]any{s.fields, test.fields} {
				for name, value := range from {
					fields[name] = value
				}
			}
			c := s.call("ordain-1")
			c.Provider.Fields = cloudtest.Fields(t, fields)
			if test.change != nil {
				test.change(&c)
			}
			_, err := s.plugin.Create(t.Context(), c)
			mustRefuse(t, err, test.says...)
		})
	}
	s.nova.RefuseCreate(http.StatusForbidden, "Policy doesn't allow os_compute_api:servers:create to be performed.")
	_, err := s.plugin.Create(t.Context(), s.call("ordain-1"))
	mustRefuse(t, err, "lacks a right", "servers:create")
	s.nova.RefuseCreate(http.StatusConflict, "Multiple possible networks found, use a Network ID to be more specific.")
	_, err = s.plugin.Create(t.Context(), s.call("ordain-1"))
	mustRefuse(t, err, "openstack_network")
	if there := s.nova.Alive(); len(there) != 0 {
		t.Errorf("refused tasks left %+v", there)
	}
}

// What may pass is tried again.
func TestErrorsThatMayPass(t *testing.T) {
	s := begin(t)
	c := s.call("ordain-1")
	for status, said := range map[int]string{
		http.StatusForbidden:           "Quota exceeded for cores: Requested 1, but already used 20 of 20 cores",
		http.StatusInternalServerError: "Unexpected API Error. " + cloudtest.NovaPassword,
		http.StatusServiceUnavailable:  "try later",
	} {
		s.nova.RefuseCreate(status, said)
		_, err := s.plugin.Create(t.Context(), c)
		mayPass(t, err, said[:9])
	}
	s.create(c)
	s.only()
}

// SSH does not answer before the time of the task ends; a token that expires meanwhile is renewed.
func TestSSHDoesNotAnswer(t *testing.T) {
	s := begin(t)
	c := s.call("ordain-1")
	id := s.create(c)
	ctx, stop := context.WithCancel(t.Context())
	tries := 0
	s.plugin.Reach = func(context.Context, plugin.Call, string) ([]string, error) {
		switch tries++; tries {
		case 1:
			s.nova.Expire()
		case 3:
			stop()
		}
		return nil, errors.New("connection refused")
	}
	_, err := s.plugin.Confirm(ctx, c)
	mayPass(t, err, id, "connection refused", "port 22")
	if tries != 3 {
		t.Errorf("SSH was tried %d times", tries)
	}
}

func TestKeystone(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"https://cloud.example.org:5000/v2.0/tokens", "https://cloud.example.org:5000/v3",
		"https://cloud.example.org:5000/v3/auth/tokens", "https://cloud.example.org:5000",
		"https://cloud.example.org:5000/", "https://cloud.example.org:5000/v2.0/",
	} {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := keystone(u); got != "https://cloud.example.org:5000/v3/" {
			t.Errorf("%s becomes %s", at, got)
		}
	}
}
