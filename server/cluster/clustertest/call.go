package clustertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// Out takes the output of calls.
type Out struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Out) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *Out) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Files are resources by type and name.
type Files map[[2]string]string

// Path returns the path of a resource.
func (f Files) Path(resourceType, name string) (string, error) {
	if path, ok := f[[2]string{resourceType, name}]; ok {
		return path, nil
	}
	var have []string
	for key := range f {
		have = append(have, key[0]+" "+key[1])
	}
	slices.Sort(have)
	return "", fmt.Errorf("there is no %s %s; there are %q", resourceType, name, have)
}

// JSON returns a value as a field has it.
func JSON(t testing.TB, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Call returns a call for the node that the machine is: as if a provider whose key it lets in had confirmed it.
func (m *Machine) Call(t testing.TB, action task.Action) (plugin.Call, *Out) {
	t.Helper()
	out := &Out{}
	c := plugin.Call{
		Task: task.Task{
			ID: uuid.New(), Fence: 1, Attempt: 1, Action: action, Tag: uuid.NewString(),
			Cluster: task.Cluster{ID: uuid.New(), Name: "shop", Owner: "anna", Environment: "test"},
			Node: task.Node{
				Number: 1000, Hostname: "shop1-1000.local", SSHUser: m.User,
				Addresses: map[string]string{"access_v4": m.Address, "bind_v4": m.Address},
				Facts:     task.Fields{"ssh_port": JSON(t, m.Port), "ssh_host_keys": JSON(t, m.HostKeys())},
			},
			Provider: task.Provider{Name: "lab", Type: "pool", Fields: task.Fields{
				"ssh_key_resource": JSON(t, "team"), "ssh_sudo": JSON(t, m.sudo()),
			}},
			TimeoutMS: 60_000,
		},
		Out: out, Files: Files{{"ssh_keys", "team"}: m.KeyFile}, Work: t.TempDir(),
	}
	return c, out
}

// sudo is the field ssh_sudo: an ordinary user who runs tests may have no sudo.
func (m *Machine) sudo() string {
	if m.root == nil {
		return "never"
	}
	return ""
}

// AddResource adds a resource of an automator to a call. Content is the file, or the files of an archive by their
// names.
func AddResource(t testing.TB, c *plugin.Call, automator, resourceType, name string, content any) {
	t.Helper()
	at := filepath.Join(t.TempDir(), name)
	format := "file"
	files := map[string]string{at: fmt.Sprint(content)}
	if archive, is := content.(map[string]string); is {
		format, files = "archive", map[string]string{}
		for file, text := range archive {
			files[filepath.Join(at, file)] = text
		}
	}
	for file, text := range files {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.Files.(Files)[[2]string{resourceType, name}] = at
	c.Resources = append(c.Resources, task.Resource{
		Kind: "automatortypes", Plugin: automator, Type: resourceType, Name: name, Version: 1, Format: format,
	})
}
