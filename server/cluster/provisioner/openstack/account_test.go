package openstack

import (
	"testing"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// The name of the project belongs to another project now: one was deleted and made again, or both were renamed. The
// machine that was made before is neither taken for gone, nor is a second one made.
func TestAnotherProject(t *testing.T) {
	s := begin(t)
	c := s.call("ordain-1")
	made, err := s.plugin.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Node.Facts = made.Facts
	if r, err := s.plugin.Confirm(t.Context(), c); err != nil || len(r.Facts) != len(made.Facts)+1 {
		t.Fatalf("%s, %v", r.Facts, err)
	}
	s.nova.Move()
	for what, call := range map[string]func() (plugin.Result, error){
		"create":  func() (plugin.Result, error) { return s.plugin.Create(t.Context(), c) },
		"confirm": func() (plugin.Result, error) { return s.plugin.Confirm(t.Context(), c) },
		"delete":  func() (plugin.Result, error) { return s.plugin.Delete(t.Context(), c) },
	} {
		t.Run(what, func(t *testing.T) {
			_, err := call()
			mustRefuse(t, err, "node 1000", "was made in the account", "provider our-cloud")
		})
	}
	if there := s.nova.Alive(); len(there) != 0 {
		t.Errorf("there is %+v", there)
	}
}
