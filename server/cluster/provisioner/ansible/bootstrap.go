package ansible

import (
	"context"
	"errors"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// Statuses of the script that finds or installs Python.
const (
	noManager = 64 + iota
	notRoot
	tooOld
)

// findPython needs the oldest version that is good enough as $1 and its minor number as $2.
const findPython = `
good() { command -v python3 >/dev/null && python3 -c "import sys; sys.exit(sys.version_info[:2] < (3, $1))"; }
if good "$2"; then exit 0; fi
if command -v python3 >/dev/null; then
	echo "the machine has $(python3 --version 2>&1), and Ansible needs $1 or newer"
	exit 66
fi
manager=
for m in apt-get dnf microdnf yum zypper apk pacman; do
	if command -v $m >/dev/null; then manager=$m; break; fi
done
if [ -z "$manager" ]; then exit 64; fi
if [ "$(id -u)" != 0 ]; then exit 65; fi
echo "installing python3 with $manager"
case $manager in
apt-get)
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q -o DPkg::Lock::Timeout=300 update || echo "the lists of packages are as old as they were"
	apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends python3 ;;
dnf | microdnf | yum) $manager -y install python3 ;;
zypper) zypper --non-interactive install python3 ;;
apk) apk add --no-progress python3 ;;
pacman) pacman -Sy --noconfirm python ;;
esac || exit 1
if good "$2"; then exit 0; fi
echo "the machine now has $(python3 --version 2>&1), and Ansible needs $1 or newer"
exit 66
`

// Bootstrap makes the virtual environment here, and sees to Python on the node.
func (a *Ansible) Bootstrap(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	if _, err := a.environment(ctx, c); err != nil {
		return plugin.Result{}, err
	}
	if err := target.Check(ctx, c); err != nil {
		return plugin.Result{}, err
	}
	i, err := a.maker.Interpreter(ctx, a.config.Python)
	if err != nil {
		return plugin.Result{}, err
	}
	e, err := editionFor(i)
	if err != nil {
		return plugin.Result{}, err
	}
	t, err := target.Open(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	err = t.Run(ctx, target.Script{
		Text: findPython, Args: []string{e.target, e.target[len("3."):]},
		Limit: time.Duration(c.TimeoutMS) * time.Millisecond,
	})
	_ = t.Close() // the machine removes the folder by itself, too
	return plugin.Result{}, explainPython(c, e, err)
}

func explainPython(c plugin.Call, e edition, err error) error {
	var exit *ssh.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	refuse := func(text, hint string) error {
		return &plugin.Refused{Err: fault.Wrap("ansible.Bootstrap", fault.Invalid, err).Say(text).Hint(hint)}
	}
	const what = "Ansible needs python3 on the machine "
	image := "choose an image with Python " + e.target + " or newer"
	switch exit.Status {
	case noManager:
		return refuse(what+c.Node.Hostname+", which has neither it nor a package manager that is known here", image)
	case notRoot:
		return refuse(what+c.Node.Hostname+", which lacks it, and only root can install it there",
			image+", log in as root, or allow sudo")
	case tooOld:
		return refuse("the Python of the machine "+c.Node.Hostname+" is too old for Ansible", image)
	}
	return fault.Wrap("ansible.Bootstrap", fault.Unavailable, err).
		Say("python3 cannot be installed on " + c.Node.Hostname).
		Hint("the output above says why; the machine needs its package sources, or an image with Python")
}
