// Package shell is the automator that runs scripts and commands.
//
//	action {"script": "setup.sh", "args": "--fast \"two words\""}
//	  └─ setup.sh is a resource of the type scripts: ./setup.sh --fast "two words"
//	     otherwise script is a command:              setup.sh --fast "two words"
//
// Both run as root, by /bin/sh, in a working folder with all scripts and archives of the
// automator; each archive lies in a folder of its name. The folder is in PATH. Args are
// text for the shell, as in Coopr; secrets do not belong there, since every user of the
// machine may see the arguments of a process. They are in the task's file:
//
//	ORDAIN_TASK   the task: action, cluster, node, service, config, nodes
//	COOPR_CONFIG  the same in the form of Coopr's tasks, of which the command
//	              coopr_lookup_key config/cluster/KEY prints one value
//
// Exit status 0 is success.
package shell

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// Fields and resource types of the automator.
const (
	ScriptField = "script"
	ArgsField   = "args"

	ScriptsType  = "scripts"
	ArchivesType = "archives"
)

// Shell is the plug-in.
type Shell struct{}

var _ plugin.Automator = Shell{}

// Bootstrap checks that the machine has what scripts need, and changes nothing.
func (Shell) Bootstrap(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	return plugin.Result{}, target.Check(ctx, c)
}

// Run runs the script of an action.
func (Shell) Run(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	if c.Service == nil {
		return plugin.Result{}, plugin.Refuse("the task has no service")
	}
	script := strings.TrimSpace(target.Text(c.Service.Fields, ScriptField))
	if script == "" {
		return plugin.Result{}, &plugin.Refused{Err: fault.New("shell.Run", fault.Invalid, fmt.Sprintf(
			"the action %s of the service %s has no script", c.Action, c.Service.Name)).
			Hint("set its field " + ScriptField + " to the name of a script or to a command")}
	}
	t, err := target.Open(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	err = run(ctx, c, t, script)
	if e := t.Close(); err == nil && e != nil && c.Out != nil {
		fmt.Fprintln(c.Out, "the script succeeded; its working folder could not be removed: "+e.Error())
	}
	return plugin.Result{}, err
}

func run(ctx context.Context, c plugin.Call, t *target.Target, script string) error {
	scripts, err := putResources(ctx, c, t)
	if err != nil {
		return err
	}
	if err := putTask(ctx, c, t); err != nil {
		return err
	}
	text := "PATH=$PWD/" + own + "/bin:$PWD:$PATH:/usr/local/sbin:/usr/sbin:/sbin\nexport PATH\n"
	for _, name := range scripts {
		text += "chmod u+x " + ssh.Quote("./"+name) + " || exit 1\n"
	}
	command := script
	if slices.Contains(scripts, script) {
		command = "exec " + ssh.Quote("./"+script)
	}
	if args := strings.TrimSpace(target.Text(c.Service.Fields, ArgsField)); args != "" {
		command += " " + args
	}
	err = t.Run(ctx, target.Script{
		Text: text + command,
		Env: map[string]string{
			"ORDAIN_TASK":    t.Folder() + "/" + taskFile,
			"COOPR_CONFIG":   t.Folder() + "/" + cooprFile,
			"ORDAIN_ACTION":  string(c.Action),
			"ORDAIN_SERVICE": c.Service.Name,
		},
		Limit: time.Duration(c.TimeoutMS) * time.Millisecond,
	})
	var exit *ssh.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	f := fault.Wrap("shell.Run", fault.Unavailable, err).
		Say(fmt.Sprintf("%s of the service %s failed on %s", c.Action, c.Service.Name, c.Node.Hostname))
	if exit.Status == 127 && word.MatchString(script) && !slices.Contains(scripts, script) {
		f.Hint(fmt.Sprintf("there is no script %q among the automator's resources (%s); upload and stage it, "+
			"or correct the service", script, orNone(scripts)))
	}
	return f
}

// word is a text that could be the name of a script.
var word = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func orNone(names []string) string {
	if len(names) == 0 {
		return "it has none"
	}
	return strings.Join(names, ", ")
}

// putResources copies the automator's scripts and archives, and returns the names of the scripts.
func putResources(ctx context.Context, c plugin.Call, t *target.Target) ([]string, error) {
	var scripts []string
	for _, r := range c.Resources {
		if r.Kind != "automatortypes" || r.Plugin != c.Service.Type || r.Type != ScriptsType && r.Type != ArchivesType {
			continue
		}
		local, err := c.Files.Path(r.Type, r.Name)
		if err != nil {
			return nil, err
		}
		if r.Type == ArchivesType {
			local = target.Archive(local, r.Name)
		} else {
			scripts = append(scripts, r.Name)
		}
		if err := t.Put(ctx, r.Name, local); err != nil {
			return nil, err
		}
	}
	return scripts, nil
}
