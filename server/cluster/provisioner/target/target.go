// Package target is the node that an automator works on: a login to it, and a working
// folder there for one call.
//
//	Call ── Endpoint: address, port, user, key, pinned host keys ──▶ Open ──▶ Target
//	Target ── Put: scripts, values ──▶ working folder ── Run: a script in it ──▶ output, exit status
//	Close removes the folder, as does the machine itself if the connection breaks
//
// Providers log in to a new machine with Confirm, which waits for it and pins its keys.
//
// Values reach a script by files in the working folder that only its owner may read,
// never by the command line of a process, which every user of the machine may see.
package target

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/task"
)

// Facts about a node that logging in goes by, and fields of providers.
const (
	HostKeysFact = "ssh_host_keys" // a list of lines, pinned by Confirm
	PortFact     = "ssh_port"
	UserFact     = "ssh_user"

	KeyField  = "ssh_key_resource" // name of a resource of the type KeyResource
	UserField = "ssh_user"
	SudoField = "ssh_sudo" // "never": do not become root

	KeyResource = "ssh_keys"
)

const maxKey = 64 << 10

// Endpoint returns how to log in to the node of a call. The user is the one that Confirm logged in as, else that of the
// image type, else that of the provider, else root.
func Endpoint(c plugin.Call) (ssh.Config, error) {
	config := ssh.Config{Host: c.Node.Addresses["access_v4"], User: "root"}
	for _, user := range []string{
		Text(c.Node.Facts, UserFact), c.Node.SSHUser, Text(c.Provider.Fields, UserField),
	} {
		if user != "" {
			config.User = user
			break
		}
	}
	if raw, ok := c.Node.Facts[PortFact]; ok {
		if err := json.Unmarshal(raw, &config.Port); err != nil || config.Port < 0 || config.Port > 65535 {
			return config, plugin.Refuse("the fact " + PortFact + " of the node is no port")
		}
	}
	if raw, ok := c.Node.Facts[HostKeysFact]; ok {
		if err := json.Unmarshal(raw, &config.HostKeys); err != nil {
			return config, plugin.Refuse("the fact " + HostKeysFact + " of the node is no list of host keys")
		}
	}
	var err error
	config.Key, err = key(c)
	return config, err
}

func key(c plugin.Call) ([]byte, error) {
	name := Text(c.Provider.Fields, KeyField)
	if name == "" {
		return nil, &plugin.Refused{Err: fault.New("target.Endpoint", fault.Invalid,
			"the provider "+c.Provider.Name+" does not say which SSH key its machines let in").
			Hint("upload the private key as a resource of the type " + KeyResource +
				", and set the provider's field " + KeyField + " to its name")}
	}
	file, err := c.Files.Path(KeyResource, name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fault.Wrap("target.Endpoint", fault.Internal, err).Say("cannot read the SSH key " + name)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return nil, fault.Wrap("target.Endpoint", fault.Internal, err).Say("cannot read the SSH key " + name)
	}
	if len(text) > maxKey {
		return nil, plugin.Refuse("the SSH key " + name + " is too large for a key")
	}
	return text, nil
}

// Text returns a field or fact that is a text, and "" if there is none.
func Text(fields task.Fields, name string) string {
	var text string
	_ = json.Unmarshal(fields[name], &text)
	return text
}

// Target is a node with a working folder. It may be used by several goroutines at once.
type Target struct {
	call   plugin.Call
	client *ssh.Client
	folder *ssh.Folder
	sudo   bool
	runs   atomic.Int64
}

// Login logs in to the node of a call. The caller closes the client.
func Login(ctx context.Context, c plugin.Call) (*ssh.Client, ssh.Config, error) {
	config, err := reachable(c)
	if err != nil {
		return nil, config, err
	}
	client, err := ssh.Dial(ctx, config)
	return client, config, err
}

func reachable(c plugin.Call) (ssh.Config, error) {
	config, err := Endpoint(c)
	if err == nil && config.Host == "" {
		err = &plugin.Refused{Err: fault.New("target.Open", fault.Invalid,
			"the node "+c.Node.Hostname+" has no address access_v4").
			Hint("it has not been confirmed; create the node again")}
	}
	return config, err
}

// Open logs in to the node of a call and makes a working folder there. What runs there runs as root, by sudo if the
// login is another user's. The caller closes the target.
func Open(ctx context.Context, c plugin.Call) (*Target, error) {
	config, err := reachable(c)
	if err != nil {
		return nil, err
	}
	return OpenAt(ctx, c, config)
}

// OpenAt is Open for a machine that the caller knows how to log in to.
func OpenAt(ctx context.Context, c plugin.Call, config ssh.Config) (*Target, error) {
	client, err := ssh.Dial(ctx, config)
	if err != nil {
		return nil, err
	}
	t := &Target{call: c, client: client, sudo: BecomesRoot(c, config)}
	t.folder, err = client.Folder(ctx, t.sudo)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return t, nil
}

// Close removes the working folder and logs out.
func (t *Target) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // also after the call's own context has ended
	defer cancel()
	return errors.Join(t.folder.Remove(ctx), t.client.Close())
}

// Folder is the path of the working folder on the node.
func (t *Target) Folder() string { return t.folder.Path }

// Put copies a file or folder of this machine into the working folder, under a name that may have slashes.
func (t *Target) Put(ctx context.Context, name, local string) error {
	return t.upload(ctx, name, func(w *tar.Writer) error { return ssh.AddPath(w, name, local) })
}

// Write writes a file in the working folder. Values that not everybody may see get the mode 0600.
func (t *Target) Write(ctx context.Context, name string, mode fs.FileMode, content []byte) error {
	return t.upload(ctx, name, func(w *tar.Writer) error { return ssh.AddFile(w, name, mode, content) })
}

func (t *Target) upload(ctx context.Context, name string, write func(*tar.Writer) error) error {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || name == "." || name == ".." ||
		strings.HasPrefix(name, "../") {
		return plugin.Refuse(fmt.Sprintf("%q is no name for a file in the working folder", name))
	}
	return t.client.Upload(ctx, t.folder.Path, t.sudo, write)
}

// Script is something to run in the working folder.
type Script struct {
	// Text is for /bin/sh.
	Text string
	// Args are "$1", "$2" and so on for Text.
	Args []string
	// Env are variables of the environment.
	Env map[string]string
	// Limit is how long it may take; 0 is as long as the context allows.
	Limit time.Duration
	// Out takes the output in place of the call's.
	Out io.Writer
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Run runs a script in the working folder. Its text, arguments and environment go there by a file. An exit status other
// than 0 is an *ssh.ExitError; the lines of output in errors have no secrets of the task.
func (t *Target) Run(ctx context.Context, s Script) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "cd %s || exit 1\n", ssh.Quote(t.folder.Path))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !variable.MatchString(name) || strings.ContainsRune(s.Env[name], 0) {
			return plugin.Refuse(fmt.Sprintf("%q cannot be a variable of the environment", name))
		}
		fmt.Fprintf(&text, "export %s=%s\n", name, ssh.Quote(s.Env[name]))
	}
	text.WriteString("set --")
	for _, arg := range s.Args {
		text.WriteString(" " + ssh.Quote(arg))
	}
	text.WriteString("\n" + s.Text + "\n")
	name := fmt.Sprintf(".run-%d", t.runs.Add(1))
	if err := t.Write(ctx, name, 0o600, text.Bytes()); err != nil {
		return err
	}
	out := s.Out
	if out == nil {
		out = t.call.Out
	}
	err := t.client.Run(ctx, ssh.Command{
		Text: "exec /bin/sh " + ssh.Quote(path.Join(t.folder.Path, name)), Sudo: t.sudo, Out: out, Limit: s.Limit,
	})
	return t.masked(err)
}

// masked removes secrets of the task from the lines of output that an error has.
func (t *Target) masked(err error) error {
	var exit *ssh.ExitError
	var f *fault.Error
	switch {
	case errors.As(err, &exit):
		exit.Last = t.mask(exit.Last)
	case errors.As(err, &f):
		f.Advice = t.mask(f.Advice)
	}
	return err
}

func (t *Target) mask(text string) string { return Mask(t.call, text) }

// Mask removes the secrets of a task from a text, such as an error made of what a program printed.
func Mask(c plugin.Call, text string) string {
	secrets := slices.SortedFunc(slices.Values(c.Secrets), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "********")
		}
	}
	return text
}

// Archive returns the folder with the content of an unpacked archive: the folder in it that has the archive's name, as
// Coopr wants it, if there is nothing beside it, and else the folder itself.
func Archive(folder, name string) string {
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) == 1 && entries[0].IsDir() && entries[0].Name() == name {
		return filepath.Join(folder, name)
	}
	return folder
}
