package aws

import (
	"context"
	"net/http"
	"testing"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// Somebody edits a provider: the same region, but the access key of another account. The machine that was made before
// is neither taken for gone, nor is a second one made in the other account.
func TestAnotherAccount(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	made, err := s.plugin.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	first := cloud.KnownAccount(withFacts(c, made))
	if len(first) != 12 {
		t.Fatalf("the account of the machine is %q", first)
	}
	s.fields["api_user"], s.fields["api_password"] = s.ec2.OtherKey, s.ec2.OtherSecret
	moved := withFacts(s.call("ordain-1"), made)
	replaced := moved
	replaced.Replace = true
	for what, call := range map[string]func() (plugin.Result, error){
		"create":  func() (plugin.Result, error) { return s.plugin.Create(t.Context(), moved) },
		"replace": func() (plugin.Result, error) { return s.plugin.Create(t.Context(), replaced) },
		"confirm": func() (plugin.Result, error) { return s.plugin.Confirm(t.Context(), moved) },
		"delete":  func() (plugin.Result, error) { return s.plugin.Delete(t.Context(), moved) },
	} {
		t.Run(what, func(t *testing.T) {
			_, err := call()
			mustRefuse(t, err, "node 1000", "made in the account "+first, "222222222222", "provider our-cloud")
		})
	}
	s.only()

	// Another key of the first account finds the machine.
	s.fields["api_user"], s.fields["api_password"] = s.ec2.Key, s.ec2.Secret
	if _, err := s.plugin.Delete(t.Context(), withFacts(s.call("ordain-1"), made)); err != nil {
		t.Error(err)
	}
	if there := s.alive(); len(there) != 0 {
		t.Errorf("after delete there is %+v", there)
	}
}

// EC2 made a machine, and its answer got lost: the account is known all the same. After an answer that says no there is
// no machine, so no account is recorded, and a corrected access key may belong to another one.
func TestTheAccountOfALostAnswer(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	s.ec2.Fail("RunInstances", 1, http.StatusBadRequest, "InvalidAMIID.NotFound", "no")
	if r, err := s.plugin.Create(t.Context(), c); err == nil || len(r.Facts) != 0 {
		t.Errorf("after a no: %s, %v", r.Facts, err)
	}
	ctx, cut := context.WithCancel(t.Context())
	s.ec2.CutAfter("RunInstances", cut)
	lost, err := s.plugin.Create(ctx, c)
	if err == nil {
		t.Fatal("the answer was not lost, so this test shows nothing")
	}
	s.fields["api_user"], s.fields["api_password"] = s.ec2.OtherKey, s.ec2.OtherSecret
	_, err = s.plugin.Delete(t.Context(), withFacts(s.call("ordain-1"), lost))
	mustRefuse(t, err, "222222222222")
}

// A cloud that only speaks the protocol of EC2 does not know whose a key is, and its machines are made and deleted as
// ever. Where the account is known, it has to be asked.
func TestACloudWithoutAccounts(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.ec2.Fail("GetCallerIdentity", 2, http.StatusBadRequest, "InvalidAction", "what is that?")
	c := s.call("ordain-1")
	made, err := s.plugin.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.plugin.Delete(t.Context(), withFacts(c, made)); err != nil {
		t.Fatal(err)
	}
	if there := s.alive(); len(there) != 0 {
		t.Errorf("after delete there is %+v", there)
	}

	if made, err = s.plugin.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.ec2.Fail("GetCallerIdentity", 1, http.StatusBadRequest, "InvalidAction", "what is that?")
	if _, err := s.plugin.Delete(t.Context(), withFacts(c, made)); err == nil {
		t.Error("a machine of a known account was deleted in an unknown one")
	}
	s.only()
}

func withFacts(c plugin.Call, r plugin.Result) plugin.Call {
	c.Node.Facts = r.Facts
	return c
}
