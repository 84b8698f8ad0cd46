// Command soak deploys 1,000 resources again and again while it kills the server,
// its executors and its database at random points. Then it checks that nothing
// was lost, done twice or left behind, and exits with 1 if anything was.
//
//	go run ./bench/soak                        # 50 rounds
//	go run ./bench/soak -rounds 5 -seed 7      # the same faults each time
//
// A round changes some of the resources and pushes. The handlers are real: each
// writes a file, and a line into a journal before and after. The journal is also
// the clock: a fault strikes when the journal has grown by a number of lines that
// the seed determines, from none (during the push or the compile) to the last,
// whatever the speed of the machine. What was killed is started again, as an init
// system would do it. When everything is deployed, the files, the journal, the
// database, the processes and the folders are compared with each other (check.go).
//
// All files are below one temporary folder, which is kept when something is wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"ordain.dev/ordain/bench/peer"
)

func main() {
	c := config{out: os.Stdout}
	flag.IntVar(&c.rounds, "rounds", 50, "rounds")
	flag.Uint64Var(&c.seed, "seed", 1, "seed of the faults; equal seeds strike at equal points")
	flag.IntVar(&c.resources, "resources", 1000, "resources")
	flag.IntVar(&c.agents, "agents", 4, "agents")
	flag.StringVar(&c.python, "python", "", "interpreter; empty: the server's default")
	flag.DurationVar(&c.patience, "patience", 3*time.Minute, "how long everything may take to be deployed again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	passed, err := run(ctx, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || !passed {
		os.Exit(1)
	}
}

func run(ctx context.Context, c config) (passed bool, err error) {
	dir, err := peer.Directory()
	if err != nil {
		return false, err
	}
	defer func() {
		if passed && err == nil {
			_ = os.RemoveAll(dir)
		} else {
			fmt.Println("the files are kept in", dir)
		}
	}()
	c.dir = dir
	if c.binary, err = peer.Build(ctx, dir); err != nil {
		return false, err
	}
	report, err := runOrdeal(ctx, c)
	for _, t := range report.troubles {
		fmt.Println(t)
	}
	fmt.Println(report.String())
	return len(report.troubles) == 0, err
}
