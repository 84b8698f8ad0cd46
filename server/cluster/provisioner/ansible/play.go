package ansible

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// play is one run of Ansible.
type play struct {
	call   plugin.Call
	python string
	config ssh.Config
	client *ssh.Client // holds the folder on the node
	folder *ssh.Folder
	// sockets is a folder with a short path, for the connections that Ansible shares between tasks. All processes of
	// the play have it in their environment or their command line.
	sockets string
}

// open logs in as the provisioner, which says better than Ansible what is wrong, and makes a working folder for Ansible
// on the node: of the user whom Ansible logs in as.
func open(ctx context.Context, c plugin.Call, python string) (*play, error) {
	if _, err := exec.LookPath("ssh"); err != nil {
		return nil, fault.New("ansible.Run", fault.Unavailable, "the provisioner's machine has no SSH client").
			Hint("install OpenSSH's client there; on Debian it is the package openssh-client")
	}
	p := &play{call: c, python: python}
	var err error
	if p.client, p.config, err = target.Login(ctx, c); err != nil {
		return nil, err
	}
	if p.folder, err = p.client.Folder(ctx, false); err != nil {
		_ = p.client.Close()
		return nil, err
	}
	if p.sockets, err = os.MkdirTemp("", "oa*.s"); err != nil {
		_ = p.close()
		return nil, fault.Disk("ansible.Run", os.TempDir(), err)
	}
	return p, nil
}

// close removes what the play has made here and on the node, but for the folder of the call.
func (p *play) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // also after the call's own context has ended
	defer cancel()
	if p.sockets != "" {
		_ = os.RemoveAll(p.sockets)
	}
	return errors.Join(p.folder.Remove(ctx), p.client.Close())
}

// play plays a playbook.
func (p *play) play(ctx context.Context, playbook string, extra json.RawMessage) error {
	c := p.call
	if err := writeFiles(c, p.config, extra); err != nil {
		return err
	}
	args := []string{
		filepath.Join(filepath.Dir(p.python), "ansible-playbook"), "-i", inventoryFile,
		"-e", "@" + filepath.Join(c.Work, extraFile), "-e", "@" + filepath.Join(c.Work, taskFile),
	}
	if tags := strings.TrimSpace(target.Text(c.Service.Fields, TagsField)); tags != "" {
		args = append(args, "--tags="+tags)
	}
	cmd := exec.Command(p.python, append(args, "--", playbook)...)
	cmd.Dir, cmd.Env = c.Work, p.environ()
	report := &report{host: c.Node.Hostname, out: output(c)}
	cmd.Stdout, cmd.Stderr = report, report
	err := run(ctx, cmd, p.sockets, p.sweepNode)
	report.flush()
	if ctx.Err() != nil && err != nil {
		p.sweepNode() // what was started meanwhile
		return context.Cause(ctx)
	}
	return report.judge(c, err)
}

// environ has the variables of Ansible. Nothing of the provisioner's own environment leads it elsewhere.
func (p *play) environ() []string {
	home := filepath.Join(p.call.Work, homeFolder)
	return []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + home, "TMPDIR=" + home, "PYTHONUNBUFFERED=1",
		"PYTHONDONTWRITEBYTECODE=1", "SSH_AUTH_SOCK=",
		"ANSIBLE_CONFIG=" + filepath.Join(p.call.Work, configFile),
		"ANSIBLE_HOME=" + filepath.Join(home, "ansible"),
		"ANSIBLE_LOCAL_TEMP=" + filepath.Join(home, "tmp"),
		"ANSIBLE_REMOTE_TEMP=" + p.folder.Path,
		"ANSIBLE_COLLECTIONS_PATH=" + filepath.Join(home, "collections"),
		"ANSIBLE_ROLES_PATH=" + filepath.Join(home, "roles"), // besides the folder roles beside the playbook
		"ANSIBLE_SSH_CONTROL_PATH_DIR=" + p.sockets,
		"ANSIBLE_SSH_ARGS=-F " + ssh.Quote(filepath.Join(p.call.Work, sshFile)) + p.shared(),
		// The names of services are names of groups.
		"ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS=ignore",
	}
}

// shared are options that share one connection between tasks, for as long as it takes. Where processes that leave
// their group cannot be found again, each task has a connection of its own; and so it has where the path of a socket
// would become too long.
func (p *play) shared() string {
	if !findsAll || len(p.sockets) > 60 {
		return " -o ControlMaster=no -o ControlPath=none"
	}
	return " -o ControlMaster=auto -o ControlPersist=60s"
}

// sweepScript ends the sessions on the node in which modules run, that is, whose command lines have a path below $d.
// Its own command lines do not have it in one piece. Modules that are interrupted remove their files, for which a busy
// machine needs a moment. Only their interpreters are interrupted: if the shells around them ended first, the terminal
// would hang up on them.
const sweepScript = `exec 2>/dev/null; all=; ` +
	`s() { l=; read -r l <$1/stat && set -- ${l##*) } && i=$4; }; ` +
	`z() { for f in /proc/[0-9]*; do s $f || continue; ` +
	`case " $all " in *" $i "*) $2 $f && kill -s $1 ${f#/proc/};; esac; done; }; ` +
	`m() { tr '\0' ' ' <$1/cmdline | grep -qF "$d"'/ansible-'; }; ` +
	`p() { tr '\0' '\n' <$1/cmdline | sed -n 2p | grep -qF "$d"'/ansible-'; }; ` +
	`for f in /proc/[0-9]*; do m $f && s $f && all="$all $i"; done; ` +
	`w() { for n in 1 2 3; do sleep 1; g=; for f in /proc/[0-9]*; do m $f && g=1; done; ` +
	`[ -n "$g" ] || return; done; }; ` +
	`if [ -n "$all" ]; then z INT p; w; z KILL :; fi; exit 0`

// sweepNode ends what Ansible has started on the node.
func (p *play) sweepNode() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = p.client.Ask(ctx, "d="+ssh.Quote(p.folder.Path)+"; "+sweepScript, target.BecomesRoot(p.call, p.config))
}
