package target

import (
	"context"
	"errors"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
)

// programs are what a target needs besides /bin/sh.
const programs = "setsid tar mktemp find dd chmod"

// Check reports what the node of a call lacks for Open and Run. It changes nothing there.
func Check(ctx context.Context, c plugin.Call) error {
	config, err := Endpoint(c)
	if err != nil {
		return err
	}
	client, err := ssh.Dial(ctx, config)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	const ask = `for p in ` + programs + `; do command -v $p >/dev/null || echo "ordain-missing:$p"; done`
	answer, err := client.Ask(ctx, ask, false)
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		return &plugin.Refused{Err: fault.Wrap("target.Check", fault.Invalid, err).
			Say("the machine " + c.Node.Hostname + " has no usable /bin/sh").
			Hint("choose an image with one, or another user")}
	} else if err != nil {
		return err
	}
	var missing []string
	for line := range strings.Lines(answer) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "ordain-missing:"); is {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return &plugin.Refused{Err: fault.New("target.Check", fault.Invalid,
			"the machine "+c.Node.Hostname+" lacks programs: "+strings.Join(missing, ", ")).
			Hint("install them in the image; setsid is in util-linux, the others in coreutils, tar and findutils")}
	}
	if !BecomesRoot(c, config) {
		return nil
	}
	if _, err := client.Ask(ctx, "exit 0", true); errors.As(err, &exit) {
		return &plugin.Refused{Err: fault.Wrap("target.Check", fault.Forbidden, err).
			Say(config.User + " may not become root on " + c.Node.Hostname + " by sudo without a password").
			Hint("allow it in the machine's sudoers, log in as root, or set the provider's field " +
				SudoField + " to never")}
	} else if err != nil {
		return err
	}
	return nil
}

// BecomesRoot reports whether what runs on the node of a call runs as root by sudo.
func BecomesRoot(c plugin.Call, config ssh.Config) bool {
	return config.User != "root" && Text(c.Provider.Fields, SudoField) != "never"
}
