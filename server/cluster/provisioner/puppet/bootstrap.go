package puppet

import (
	"context"
	"errors"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// Exit statuses of the script that finds or installs Puppet.
const (
	notDebian = 64 + iota
	notRoot
)

// install installs the package of the distribution, whose service, the agent, stays off.
const install = find + `if [ -n "$puppet" ]; then exit 0; fi
if ! command -v apt-get >/dev/null; then exit 64; fi
if [ "$(id -u)" != 0 ]; then exit 65; fi
echo "installing Puppet with apt-get"
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"; }
apt update || echo "the lists of packages are as old as they were"
package=puppet
if apt-cache show puppet-agent >/dev/null 2>&1; then package=puppet-agent; fi
apt install --no-install-recommends "$package" || exit 1
` + find + `[ -n "$puppet" ] && "$puppet" --version`

// Bootstrap installs Puppet on a machine that has none.
func (Puppet) Bootstrap(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	if err := target.Check(ctx, c); err != nil {
		return plugin.Result{}, err
	}
	t, err := target.Open(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	err = t.Run(ctx, target.Script{Text: install, Limit: time.Duration(c.TimeoutMS) * time.Millisecond})
	_ = t.Close() // the machine removes the folder by itself, too
	var exit *ssh.ExitError
	if !errors.As(err, &exit) {
		return plugin.Result{}, err
	}
	refuse := func(text string) error {
		return &plugin.Refused{Err: fault.New("puppet.Bootstrap", fault.Invalid,
			"the machine "+c.Node.Hostname+" has no Puppet, and "+text).
			Hint("choose an image with Puppet (puppet in PATH, or /opt/puppetlabs/bin/puppet)")}
	}
	switch exit.Status {
	case notDebian:
		return plugin.Result{}, refuse("it is installed by itself only where there is apt-get, as on Debian and Ubuntu")
	case notRoot:
		return plugin.Result{}, refuse("only root can install it; log in as root, or allow sudo")
	}
	return plugin.Result{}, fault.Wrap("puppet.Bootstrap", fault.Unavailable, err).
		Say("Puppet cannot be installed on " + c.Node.Hostname).
		Hint("the output above says why; the machine needs its package sources, or an image with Puppet")
}
