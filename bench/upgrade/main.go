// Command upgrade replaces a server of the release before by one of this checkout while
// both use one database and people go on pushing:
//
//	go run ./bench/upgrade                           # from the release before
//	go run ./bench/upgrade -from v0.3 -rounds 3      # from another commit, three times
//
// Both programs are real: the old one is built from its commit, in a worktree in a temporary
// folder. So are PostgreSQL and the Git repositories, one for each environment. A round goes
// through the steps of docs/replicas.md, and pushes to every environment in each:
//
//	old                     the old server makes the schema and deploys everything
//	old + new api           the new program changes the schema; the old one goes on
//	old, killed and back    it starts again, on the schema of the new one
//	old + new               environments move over to the new one, one at a time
//	new                     the old one ends, and the rest moves over
//
// After each step every resource has to be deployed as it was pushed, nothing may have been
// written twice, both servers have to answer, and the old server must not have ended by
// itself. It works with any newer schema whose steps say "-- since: N" with an N that the old
// program has; without a newer schema it says so, and checks the rest.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"ordain.dev/ordain/bench/peer"
)

// releaseBefore is the commit that the release before was made from. A release sets it to
// its predecessor's.
const releaseBefore = "68abd70c"

type config struct {
	dir          string
	oldBinary    string
	newBinary    string
	cache        string // of wheels and tools, shared by all
	environments int
	items        int // resources of each environment
	patience     time.Duration
	out          io.Writer
}

func main() {
	c := config{out: os.Stdout}
	from, rounds := "", 0
	flag.StringVar(&from, "from", releaseBefore, "commit of the old program")
	flag.IntVar(&rounds, "rounds", 1, "how many upgrades")
	flag.IntVar(&c.environments, "environments", 6, "environments")
	flag.IntVar(&c.items, "resources", 20, "resources of each environment")
	flag.DurationVar(&c.patience, "patience", 3*time.Minute, "how long a step may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c, from, rounds); err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c config, from string, rounds int) (err error) {
	work, err := peer.Directory()
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			_ = os.RemoveAll(work)
		} else {
			fmt.Fprintln(c.out, "the files are kept in", work)
		}
	}()
	if c.newBinary, err = peer.Build(ctx, work); err != nil {
		return err
	}
	if c.oldBinary, err = buildCommit(ctx, work, from); err != nil {
		return err
	}
	c.cache = filepath.Join(work, "cache")
	for n := range rounds {
		c.dir = filepath.Join(work, fmt.Sprint("round", n))
		if err := os.Mkdir(c.dir, 0o711); err != nil {
			return err
		}
		began := time.Now()
		if err := upgrade(ctx, c); err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		fmt.Fprintf(c.out, "round %d: upgraded in %s\n", n+1, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}
