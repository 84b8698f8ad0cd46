package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ordain.dev/ordain/internal/fault"
)

// watchEvery is how often commands that watch ask the server.
const watchEvery = time.Second

// pause waits until it is time to ask again; false: the command was interrupted.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(watchEvery):
		return true
	}
}

// liveLine prints lines that say how far something is: on a terminal the newest in the place of the one before, else
// those that are new, one below the other.
type liveLine struct {
	out    io.Writer
	live   bool
	before string
}

func newLiveLine(c *cobra.Command) *liveLine {
	p := &liveLine{out: c.OutOrStdout()}
	under := p.out
	if o, ok := under.(*output); ok {
		under = o.Writer
	}
	if file, ok := under.(*os.File); ok {
		p.live = term.IsTerminal(int(file.Fd()))
	}
	return p
}

func (p *liveLine) show(line string) {
	if line == p.before {
		return
	}
	p.before = line
	if p.live {
		fmt.Fprint(p.out, "\r\x1b[K"+line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// end ends the line that is shown.
func (p *liveLine) end() {
	if p.live && p.before != "" {
		fmt.Fprintln(p.out)
	}
}

func clusterStatus(k *clusters) *cobra.Command {
	var watch bool
	c := command("status NAME", "Show how far a cluster is", func(c *cobra.Command, args []string) error {
		one, err := k.status(c, args[0])
		switch {
		case err != nil:
			return err
		case watch:
			return k.watch(c, args[0])
		case k.format == "json":
			return k.showJSON(c, one)
		}
		fmt.Fprintln(c.OutOrStdout(), statusLine(one))
		return nil
	})
	c.Long = "With --watch it goes on until nothing is left to do; what was committed and is not deployed yet is\n" +
		"waited for. Exit status: 1 if it is not what was wanted then."
	c.Flags().BoolVar(&watch, "watch", false, "go on until it is done")
	return c
}

// committed is the state of a cluster whose file was not deployed yet.
const committed = "committed"

// status returns how far a cluster is, also one that was not deployed yet.
func (k *clusters) status(c *cobra.Command, name string) (one row, err error) {
	err = k.call(c, get, "/"+escape(name)+"/status", nil, &one)
	if !fault.Is(err, fault.NotFound) {
		return one, err
	}
	var shown row
	if err := k.call(c, get, "/"+escape(name), nil, &shown); err != nil {
		return nil, err
	}
	return row{"status": shown["state"]}, nil
}

// statusLine says how far a cluster is.
func statusLine(one row) string {
	line := cell(one, "status")
	if line == committed {
		return "committed, and not deployed yet"
	}
	if action := cell(one, "action"); action != "" {
		line += fmt.Sprintf("; %s: %s, %s of %s tasks", action, cell(one, "actionstatus"), cell(one, "stepscompleted"),
			cell(one, "stepstotal"))
	}
	if one["paused"] == true {
		line += "; paused, ordain cluster resume goes on"
	}
	if problem := cell(one, "problem"); problem != "" {
		line += "; " + problem
	}
	return line
}

// watch shows how far a cluster is until nothing is left to do.
func (k *clusters) watch(c *cobra.Command, name string) error {
	p := newLiveLine(c)
	show := func(line string) {
		if k.format != "json" {
			p.show(line)
		}
	}
	defer p.end()
	for {
		one, err := k.status(c, name)
		if fault.Is(err, fault.NotFound) {
			if k.format == "json" {
				return k.showJSON(c, row{"status": "terminated"})
			}
			show("gone")
			return nil
		}
		if err != nil {
			return err
		}
		line := statusLine(one)
		if idle(one) {
			waits := k.waits(c, name)
			if waits == "" {
				show(line)
				return k.settled(c, one)
			}
			line += "; " + waits
		}
		show(line)
		if !pause(c.Context()) {
			return nil
		}
	}
}

// idle reports whether nothing is done for a cluster, and nobody has asked for another job.
func idle(one row) bool {
	job := one["actionstatus"]
	return job != nil && job != "running" && one["retry"] != true
}

// settled ends the watch of a cluster that is not what was wanted with an error.
func (k *clusters) settled(c *cobra.Command, one row) error {
	if k.format == "json" {
		if err := k.showJSON(c, one); err != nil {
			return err
		}
	}
	if one["status"] != "active" {
		return errPrinted
	}
	return nil
}

// waits says what a cluster waits for whose newest job has ended; empty: nothing.
func (k *clusters) waits(c *cobra.Command, name string) string {
	var file, one row
	if k.call(c, get, "/"+escape(name), nil, &one) != nil {
		return ""
	}
	if one["state"] == "active" && !reflect.DeepEqual(one["wanted"], one["applied"]) {
		return "what was deployed begins soon"
	}
	err := k.call(c, get, "/"+escape(name)+"/file", nil, &file)
	gone := fault.Is(err, fault.Conflict) // or nobody can read it
	if gone && one["wanted"] != nil ||
		err == nil && file["commit"] != one["wanted_commit"] && !reflect.DeepEqual(file["manifest"], one["wanted"]) {
		return "its file has changed and is not deployed yet"
	}
	return ""
}
