package ssh

import (
	"bufio"
	"context"
	"io"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Folder is a new, empty folder on the machine that only its owner may read. A process on the machine removes it when
// Remove is called, and some seconds after the connection has ended, when its commands have ended too.
type Folder struct {
	Path string

	client  *Client
	session *session
	out     *output
	quit    chan struct{}
}

const folderMark = "ordain-folder:"

// holdFolder is the script of that process. Folders that survived a crash of the machine are removed after a week.
func holdFolder(beat time.Duration) string {
	return `exec 3<&0 </dev/null; umask 077; cd / && b=$HOME/.cache/ordain-tasks && ` +
		`if [ "$(id -u)" = 0 ]; then b=/var/cache/ordain-tasks; fi && mkdir -p "$b" && ` +
		`find "$b" -mindepth 1 -maxdepth 1 -type d -mtime +7 -exec rm -rf -- {} + && ` +
		`d=$(mktemp -d "$b/XXXXXXXXXX") || exit 1; echo "` + folderMark + `$d"; c=.; ` +
		`while [ "$c" = . ]; do touch "$d"; ` + awaitSilence(beat) + `done; ` +
		`if [ "$c" != q ]; then sleep 7; fi; rm -rf -- "$d"`
}

// Folder makes a folder.
func (c *Client) Folder(ctx context.Context, sudo bool) (*Folder, error) {
	s, err := c.start(ctx, c.line(sudo, holdFolder(c.config.Beat), "ordain"))
	if err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	out := copyOutput(s, write)
	first := make(chan string, 1)
	go func() {
		scan := bufio.NewScanner(read)
		for scan.Scan() { // a login shell may print things of its own before
			if at, is := strings.CutPrefix(scan.Text(), folderMark); is && strings.HasPrefix(at, "/") {
				first <- at
				break
			}
		}
		_ = read.Close()
	}()
	fail := func(err error) (*Folder, error) {
		_ = write.Close()
		_ = s.channel.Close()
		return nil, err
	}
	select {
	case at := <-first:
		f := &Folder{Path: at, client: c, session: s, out: out, quit: make(chan struct{})}
		go s.beat(c.config.Beat, f.quit)
		return f, nil
	case <-s.ended:
	case <-ctx.Done():
		return fail(fault.Wrap("ssh.Folder", fault.Unavailable, context.Cause(ctx)).
			Say("cannot make a working folder on " + c.address))
	}
	last := lines(out.finish())
	err = s.result(c, last)
	if strings.Contains(last, "sudo") {
		return fail(fault.New("ssh.Folder", fault.Forbidden,
			c.config.User+" may not become root on "+c.address+" by sudo without a password: "+last).
			Hint("allow it in the machine's sudoers, log in as root, or set the provider's field ssh_sudo to never"))
	}
	return fail(fault.Wrap("ssh.Folder", fault.Unavailable, orUnexpected(err)).
		Say("cannot make a working folder on " + c.address))
}

func orUnexpected(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Remove removes the folder with all that is in it, and returns when it is gone. It may be called once.
func (f *Folder) Remove(ctx context.Context) error {
	close(f.quit)
	defer f.session.channel.Close()
	if err := f.session.say('q'); err != nil {
		return f.client.lost(err)
	}
	select {
	case <-f.session.ended:
		return f.session.result(f.client, lines(f.out.finish()))
	case <-ctx.Done():
		return fault.Wrap("ssh.Folder", fault.Unavailable, context.Cause(ctx)).
			Say("removing the working folder on " + f.client.address + " takes too long; the machine goes on with it")
	}
}
