package target

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/task"
)

// First says how to log in to a machine for the first time.
type First struct {
	ssh.Config
	// Wait is how long the machine may take until it lets in; 0 is as long as the context allows.
	Wait time.Duration
	// KeyLater says that the machine gets its key while it starts, so that being turned away is no error until Wait is
	// over. Otherwise it is a plugin.Refused.
	KeyLater bool
}

// pause is the time between two attempts to log in.
const pause = 2 * time.Second

// Confirm waits until a machine lets in, and returns its addresses, and as facts what Endpoint goes by, and the
// machine's host name ("hostname"). Without pinned host keys in f it pins the one that the machine shows: this is the
// one time when a machine is trusted that nobody vouches for.
func Confirm(ctx context.Context, c plugin.Call, f First) (plugin.Result, error) {
	whole := ctx
	if f.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.Wait)
		defer cancel()
	}
	f.Learn = len(f.HostKeys) == 0
	client, err := f.dial(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	defer client.Close()
	return f.ask(whole, client)
}

func (f First) dial(ctx context.Context, c plugin.Call) (*ssh.Client, error) {
	said := ""
	for {
		client, err := ssh.Dial(ctx, f.Config)
		switch {
		case err == nil:
			return client, nil
		case plugin.IsRefused(err):
			return nil, err
		case fault.Is(err, fault.Unauthorized) && !f.KeyLater:
			return nil, &plugin.Refused{Err: err}
		case ctx.Err() != nil && said != "": // the reason is what was wrong before the time was over
			return nil, fault.New("target.Confirm", fault.Unavailable, "the machine was awaited in vain: "+said)
		case ctx.Err() != nil:
			return nil, err
		}
		if text := err.Error(); text != said {
			said = text
			if c.Out != nil {
				fmt.Fprintln(c.Out, "waiting for the machine: "+text)
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// hostName is what a machine may say that its name is.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// ask asks the machine what only it knows. SSH_CONNECTION has the machine's own address of the connection, which is
// another than the one dialled if there is address translation between.
func (f First) ask(ctx context.Context, client *ssh.Client) (plugin.Result, error) {
	const question = `echo "ordain-address:${SSH_CONNECTION}"; ` +
		`echo "ordain-hostname:$(hostname -f 2>/dev/null || hostname 2>/dev/null || uname -n)"`
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answer, err := client.Ask(ctx, question, false)
	if err != nil {
		return plugin.Result{}, err
	}
	access := f.Host
	if peer, ok := client.Peer().(*net.TCPAddr); ok {
		access = peer.AddrPort().Addr().Unmap().String()
	}
	bind, hostname := access, ""
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "ordain-address:"); ok {
			if words := strings.Fields(text); len(words) == 4 {
				if address, err := netip.ParseAddr(words[2]); err == nil {
					bind = address.Unmap().WithZone("").String()
				}
			}
		}
		if text, ok := strings.CutPrefix(line, "ordain-hostname:"); ok && hostName.MatchString(text) {
			hostname = text
		}
	}
	keys := f.HostKeys
	if f.Learn {
		keys = []string{client.HostKey()}
	}
	pinned, err := ssh.HostKeys(keys)
	if err != nil {
		return plugin.Result{}, err
	}
	facts := map[string]any{HostKeysFact: pinned, UserFact: f.User, "hostname": hostname, PortFact: 22}
	if f.Port != 0 {
		facts[PortFact] = f.Port
	}
	result := plugin.Result{Addresses: map[string]string{"access_v4": access, "bind_v4": bind}, Facts: task.Fields{}}
	for name, value := range facts {
		if result.Facts[name], err = json.Marshal(value); err != nil {
			return plugin.Result{}, err
		}
	}
	return result, nil
}
