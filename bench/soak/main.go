// Command soak deploys 1,000 resources again and again while the server, its
// executors and its database are killed at random points, and reports what was
// lost or done twice. It ends with 1 when anything was.
//
//	go run ./bench/soak                        # 50 rounds
//	go run ./bench/soak -rounds 5 -seed 7      # the same faults each time
//
// Everything is below a folder of its own, which is kept when something is wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"ordain.dev/ordain/bench/ordeal"
	"ordain.dev/ordain/bench/peer"
)

func main() {
	c := ordeal.Config{Out: os.Stdout}
	flag.IntVar(&c.Rounds, "rounds", 50, "rounds")
	flag.Uint64Var(&c.Seed, "seed", 1, "of the faults; equal seeds strike at equal points")
	flag.IntVar(&c.Resources, "resources", 1000, "resources")
	flag.IntVar(&c.Agents, "agents", 4, "agents")
	flag.StringVar(&c.Python, "python", "", "interpreter; empty: the server's default")
	flag.DurationVar(&c.Patience, "patience", 3*time.Minute, "how long everything may take to be deployed again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	well, err := run(ctx, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || !well {
		os.Exit(1)
	}
}

func run(ctx context.Context, c ordeal.Config) (well bool, err error) {
	dir, err := os.MkdirTemp("", "ordain-soak-")
	if err != nil {
		return false, err
	}
	defer func() {
		if well && err == nil {
			_ = os.RemoveAll(dir)
		} else {
			fmt.Println("everything is kept in", dir)
		}
	}()
	if err := os.Chmod(dir, 0o711); err != nil { // the database runs as another user
		return false, err
	}
	c.Dir = dir
	if c.Binary, err = peer.Build(ctx, dir); err != nil {
		return false, err
	}
	report, err := ordeal.Run(ctx, c)
	for _, t := range report.Troubles {
		fmt.Println(t)
	}
	fmt.Println(report.String())
	return len(report.Troubles) == 0, err
}
