package plugins

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/aws"
	"ordain.dev/ordain/server/cluster/provisioner/openstack"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/target"
	"ordain.dev/ordain/server/cluster/task"
)

// A new machine of a cloud is reached with the provider's key, whatever was pinned for the node before, and its own
// key is returned. A machine that does not let in yet is asked again; a provider without a key is refused at once.
func TestReach(t *testing.T) {
	m := clustertest.Machines(t, 1)[0]
	c, _ := m.Call(t, task.Confirm)
	want := m.HostKeys()
	c.Node.Facts[target.HostKeysFact] = clustertest.JSON(t, []string{
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHVKz1dIZDI1NTE5cKzVx6Fz0cGqFh0pJ3Jr3l0sVb5m"})
	c.Node.Addresses = nil // the address is the one that the cloud says
	got, err := reach(t.Context(), c, m.Address)
	if err != nil || len(got) == 0 || !slices.Contains(want, got[0]) {
		t.Errorf("%q %v, want one of %q", got, err, want)
	}

	other, _ := m.Call(t, task.Confirm)
	other.Node.SSHUser = "nobody-that-is-there"
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = reach(ctx, other, m.Address)
	if err == nil || plugin.IsRefused(err) || !strings.Contains(err.Error(), "does not let nobody-that-is-there in") {
		t.Errorf("turned away: %v", err)
	}

	delete(c.Provider.Fields, target.KeyField)
	if _, err := reach(t.Context(), c, m.Address); !plugin.IsRefused(err) {
		t.Errorf("without a key: %v", err)
	}
}

// Every provider type that the catalogue has from the beginning can be carried out, and clouds can reach their
// machines.
func TestBuiltIn(t *testing.T) {
	all := BuiltIn()
	for _, p := range catalogue.BuiltIn() {
		if p.Automator {
			continue
		}
		if all.Providers[p.Name] == nil {
			t.Errorf("nothing carries out the provider type %s", p.Name)
		}
	}
	if all.Automators["shell"] == nil {
		t.Error("nothing carries out the automator type shell")
	}
	if all.Providers["aws"].(*aws.Plugin).Reach == nil || all.Providers["openstack"].(*openstack.Plugin).Reach == nil {
		t.Error("a cloud cannot reach its machines")
	}
}

// Programs of a folder are added. One with a built-in type, and one that is broken, are reported and left out.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, manifest := range map[string]string{
		"mine":   `{"name":"mine","protocol":1,"program":"main.sh","providertypes":["lab"],"automatortypes":["make"]}`,
		"takes":  `{"name":"it","protocol":1,"program":"main.sh","providertypes":["pool"],"automatortypes":["shell"]}`,
		"broken": `{"name":`,
	} {
		for file, text := range map[string]string{"plugin.json": manifest, "main.sh": "#!/bin/sh\n"} {
			path := filepath.Join(dir, name, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	var said bytes.Buffer
	all, err := Load(Config{Folder: dir, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(all.Providers)); !slices.Equal(got, []string{"aws", "lab", "openstack", "pool"}) {
		t.Errorf("the provider types are %q", got)
	}
	if all.Automators["make"] == nil || all.Automators["shell"] != BuiltIn().Automators["shell"] {
		t.Errorf("the automator types are %v", all.Automators)
	}
	if text := said.String(); strings.Count(text, "its type is built in") != 2 ||
		strings.Count(text, "a plug-in cannot be used") != 1 {
		t.Errorf("the log says\n%s", text)
	}
	if _, err := Load(Config{Folder: filepath.Join(dir, "nowhere"), Logger: slog.Default()}); err == nil {
		t.Error("a folder that is not there is no error")
	}
}
