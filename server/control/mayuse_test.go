package control

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// A maintainer of one project could read the repositories of all others through the server's disk.
func TestRepositoriesOnDiskAreForAdministrators(t *testing.T) {
	maintainer := access.Principal{Kind: access.Person, Name: "mallory", Bindings: []access.Binding{
		{Role: access.Administrator, Scope: access.Scope{Project: uuid.New()}},
	}}
	root := access.Principal{
		Kind:     access.Person,
		Name:     "root",
		Bindings: []access.Binding{{Role: access.Administrator}},
	}
	for _, url := range []string{"/var/lib/inmanta/server/.mirrors/x.git", "file:///srv/git/bank", "file:/srv"} {
		if err := mayUse(access.With(context.Background(), maintainer), url); !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", url, err)
		}
		if err := mayUse(access.With(context.Background(), root), url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := mayUse(access.With(context.Background(), maintainer), "https://git.example.com/a.git"); err != nil {
		t.Error(err)
	}
}
