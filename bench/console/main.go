// Command console measures the console and the list of resources as an environment grows:
//
//	go run ./bench/console                         # 50,000 resources, 100,000 for the API, 200 viewers
//	go run ./bench/console -resources 5000 -api 0 -viewers 20
//	go run ./bench/console -only compare,graph     # some pages, to mend one
//
// It fills a real server by pushing a model, deploying it, changing 20,000 resources, deploying those, trying a
// further change in a dry run, and changing some files behind the server's back. Then it follows every link from the
// first page, so that no page that people can reach is forgotten, and times some addresses of each kind: the first
// visit, which finds nothing prepared, and further ones. The slowest kinds are printed, and those that miss a bar; with
// -all every one. If something misses its bar, the command fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"ordain.dev/ordain/bench/peer"
)

// What has to be reached.
const (
	barFirstByte = 300 * time.Millisecond // p95 of each page
	barWire      = 100 << 10              // bytes of each page, compressed
	barViewer    = 20 << 10               // bytes per second for each viewer of the overview during a deployment
	barOne       = 5 * time.Millisecond   // p99 of a list of resources, one client
	barMany      = 500 * time.Millisecond // the same for 300 clients at once
	clients      = 300
)

type options struct {
	resources, changes, drifted int
	api                         int
	viewers                     int
	requests                    int
	only                        string
	all                         bool
	dir                         string
}

func main() {
	var o options
	flag.IntVar(&o.resources, "resources", 50_000, "resources of the environment whose pages are measured")
	flag.IntVar(&o.changes, "changes", 20_000, "resources that a commit changes")
	flag.IntVar(&o.drifted, "drifted", 1000, "resources that somebody changes behind the server's back")
	flag.IntVar(&o.api, "api", 100_000, "resources of the environment whose list the API is asked for; 0: leave it out")
	flag.IntVar(&o.viewers, "viewers", 200, "viewers of the overview during a deployment; 0: leave them out")
	flag.IntVar(&o.requests, "requests", 30, "requests of each kind of page")
	flag.StringVar(&o.only, "only", "", "measure only kinds of pages whose address has one of these texts")
	flag.BoolVar(&o.all, "all", false, "print every kind of page, also the quick ones")
	flag.Parse()
	o.changes, o.drifted = min(o.changes, o.resources), min(o.drifted, o.resources)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	var err error
	if o.dir, err = peer.Directory(); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	binary, err := peer.Build(ctx, o.dir)
	if err != nil {
		return err
	}
	items := filepath.Join(o.dir, "items")
	if err := os.Mkdir(items, 0o755); err != nil {
		return err
	}
	// The handlers write to the machine of the server, as its user.
	s, err := peer.StartOrdain(ctx, binary, o.dir, "", "ORDAIN_ISOLATION_ALLOW_WRITE="+items,
		"ORDAIN_ISOLATION_FIRST_USER=0")
	if err != nil {
		return err
	}
	defer s.Stop()
	e := &estate{options: o, server: s, items: items}
	if err := e.fill(ctx); err != nil {
		return err
	}
	missed, err := measurePages(ctx, o, s.URL())
	if err != nil {
		return err
	}
	if o.viewers > 0 {
		more, err := e.measureViewers(ctx)
		if err != nil {
			return err
		}
		missed += more
	}
	if o.api > 0 {
		more, err := e.measureList(ctx)
		if err != nil {
			return err
		}
		missed += more
	}
	if missed > 0 {
		return fmt.Errorf("%d measurements miss their bar", missed)
	}
	return ctx.Err()
}

// verdict marks what misses its bar, and counts it.
func verdict(ok bool, missed *int) string {
	if ok {
		return ""
	}
	*missed++
	return "  <-- misses the bar"
}

var errNoDryRun = errors.New("the dry run did not end")
