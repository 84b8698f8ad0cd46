package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/cloudtest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

func TestMain(m *testing.M) { cloudtest.Main(m) }

// story is a region of EC2, a plug-in, and a node.
type story struct {
	*testing.T
	ec2    *cloudtest.EC2
	door   *cloudtest.Door
	plugin *Plugin
	fields map[string]any
}

func begin(t *testing.T) *story {
	t.Helper()
	s := &story{T: t, ec2: cloudtest.StartEC2(t), door: &cloudtest.Door{}}
	s.plugin = &Plugin{Reach: s.door.Reach, Poll: 10 * time.Millisecond, Settle: 50 * time.Millisecond}
	s.fields = map[string]any{
		"api_user": s.ec2.Key, "api_password": s.ec2.Secret, "aws_region": s.ec2.Region, "endpoint": s.ec2.URL,
		"ssh_keypair": "team", "ssh_key_resource": "team", "security_groups": "default",
	}
	return s
}

func (s *story) call(tag string) plugin.Call {
	s.Helper()
	c := cloudtest.Call(s, tag, cloudtest.Fields(s, s.fields))
	c.Node.Image, c.Node.Flavor = cloudtest.Image, cloudtest.Flavor
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

// alive returns the instances of the region.
func (s *story) alive() []cloudtest.Machine {
	s.Helper()
	return s.ec2.Alive(s, func(r *http.Request, body []byte) {
		sum := sha256.Sum256(body)
		err := v4.NewSigner().SignHTTP(s.Context(), sdk.Credentials{
			AccessKeyID: s.ec2.Key, SecretAccessKey: s.ec2.Secret,
		}, r, hex.EncodeToString(sum[:]), "ec2", s.ec2.Region, time.Now())
		if err != nil {
			s.Fatal(err)
		}
	})
}

// only checks that one instance is there, and returns it.
func (s *story) only() cloudtest.Machine {
	s.Helper()
	there := s.alive()
	if len(there) != 1 {
		s.Fatalf("there are %d instances, want one: %+v", len(there), there)
	}
	return there[0]
}

func mustRefuse(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil || !plugin.IsRefused(err) {
		t.Fatalf("got %v, want a refusal", err)
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
}

// A machine is made, is confirmed as soon as SSH answers, and is deleted; twice does no harm.
func TestTheLifeOfAMachine(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	id := s.create(c)
	m := s.only()
	tags := map[string]string{}
	for _, tag := range m.Tags {
		tags[tag.Key] = tag.Value
	}
	if m.ID != id || tags[tagName] != "ordain-1" || tags["Name"] != "shop7-1000.local" ||
		tags["ordain:cluster"] != "shop" {
		t.Errorf("machine %s has tags %v", m.ID, tags)
	}
	if again := s.create(c); again != id {
		t.Errorf("a second create returned %s, not %s", again, id)
	}

	s.door.Refuse = 2 // the machine boots
	r, err := s.plugin.Confirm(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	access, bind := r.Addresses["access_v4"], r.Addresses["bind_v4"]
	if !strings.HasPrefix(bind, "172.31.") && !strings.HasPrefix(bind, "10.") || access == bind || access == "" {
		t.Errorf("addresses are %v, want a private and a public one", r.Addresses)
	}
	if string(r.Facts[cloud.ProviderID]) != `"`+id+`"` || string(r.Facts[cloud.HostKeys]) != `["ssh-ed25519 AAAA"]` {
		t.Errorf("facts are %s", r.Facts)
	}
	if asked := s.door.Asked(); len(asked) != 3 || asked[0] != access {
		t.Errorf("SSH was tried at %v", asked)
	}

	for range 2 {
		c.Node.Facts = r.Facts
		if _, err := s.plugin.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if there := s.alive(); len(there) != 0 {
			t.Fatalf("after delete there is %+v", there)
		}
	}
	if _, err := s.plugin.Confirm(t.Context(), c); plugin.IsRefused(err) {
		t.Errorf("got %v; another create could mend it", err)
	} else {
		mustSay(t, err, id, "terminated")
	}
}

// The provisioner dies right after EC2 made the machine, and EC2 does not list the machine yet when the next
// provisioner looks. The client token keeps it from making a second one.
func TestKilledRightAfterRunInstances(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	ctx, kill := context.WithCancel(t.Context())
	s.ec2.CutAfter("RunInstances", kill)
	if r, err := s.plugin.Create(ctx, c); err == nil {
		t.Fatalf("got %v from a plug-in that was killed", r)
	}
	made := s.only()
	s.ec2.Hide(1)
	c.Attempt = 2
	if id := s.create(c); id != made.ID {
		t.Errorf("the second attempt returned %s, and %s is there", id, made.ID)
	}
	s.only()
	if runs := s.ec2.Requests("RunInstances"); len(runs) != 2 {
		t.Errorf("RunInstances was sent %d times, so this test shows nothing", len(runs))
	}
}

// The same, but between the attempts somebody changed the provider: what is there counts.
func TestKilledAndThenChanged(t *testing.T) {
	t.Parallel()
	s := begin(t)
	ctx, kill := context.WithCancel(t.Context())
	s.ec2.CutAfter("RunInstances", kill)
	if r, err := s.plugin.Create(ctx, s.call("ordain-1")); err == nil {
		t.Fatalf("got %v from a plug-in that was killed", r)
	}
	made := s.only()
	s.ec2.Hide(1)
	s.fields["aws_root_ebs_size"] = "20"
	if id := s.create(s.call("ordain-1")); id != made.ID {
		t.Errorf("the second attempt returned %s, and %s is there", id, made.ID)
	}
	s.only()
}

// The provisioner dies right after EC2 made the machine, and the cluster is deleted while EC2 does not list it yet.
func TestDeletedBeforeItIsListed(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	ctx, kill := context.WithCancel(t.Context())
	s.ec2.CutAfter("RunInstances", kill)
	if r, err := s.plugin.Create(ctx, c); err == nil {
		t.Fatalf("got %v from a plug-in that was killed", r)
	}
	s.ec2.Hide(2)
	if _, err := s.plugin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if there := s.alive(); len(there) != 0 {
		t.Errorf("after delete there is %+v", there)
	}
}

// What could not be confirmed is replaced by another machine, also when the replacement has to be replaced.
func TestReplace(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	seen := map[string]bool{s.create(c): true}
	c.Replace = true
	for range 3 { // with the same number of attempt: only the machine that is gone tells them apart
		seen[s.create(c)] = true
	}
	c.Attempt = 2
	last := s.create(c)
	if seen[last] = true; len(seen) != 5 {
		t.Errorf("the machines were %v, want five", seen)
	}
	if m := s.only(); m.ID != last {
		t.Errorf("%s is there, and %s was returned", m.ID, last)
	}
}

// A machine that somebody deleted by hand is made anew, although EC2 remembers its client token.
func TestDeletedByHand(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	first := s.create(c)
	if _, err := s.plugin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if second := s.create(c); second == first || second != s.only().ID {
		t.Errorf("create returned %s after %s was deleted", second, first)
	}
}

// Machines of other nodes stay, whatever the facts say.
func TestOtherMachinesStay(t *testing.T) {
	t.Parallel()
	s := begin(t)
	theirs := s.call("ordain-2")
	id := s.create(theirs)
	c := s.call("ordain-1")
	if _, err := s.plugin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Node.Facts = cloud.Machine(id).Facts
	_, err := s.plugin.Delete(t.Context(), c)
	mustRefuse(t, err, id, "ordain-2")
	s.only()
}

// A second machine with the same tag does not stay.
func TestTwoWithOneTag(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	s.create(c)
	s.ec2.Hide(1)
	other := c
	other.Replace, other.Attempt = true, 7 // Replace that does not see the first machine
	s.create(other)
	if n := len(s.alive()); n != 2 {
		t.Fatalf("there are %d instances, so this test shows nothing", n)
	}
	kept := s.create(c) // EC2 tells times in seconds, so either may be the older one
	if m := s.only(); m.ID != kept {
		t.Errorf("create kept %s, and %s is there", kept, m.ID)
	}
}
