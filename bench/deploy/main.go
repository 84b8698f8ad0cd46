// Command deploy measures deployments side by side with the reference. The
// handlers do nothing, so it measures the server, its scheduler and its
// executors. Both servers run on this machine and take turns.
//
//	go run ./bench/deploy                            # installs the reference; 1,000 and 5,000 resources, four agents
//	go run ./bench/deploy -alone -sizes 1000 -wide   # Ordain only, with 100 agents as well
//	go run ./bench/deploy -halts                     # compares what pauses and halts do; measures nothing
//
// For each size, a commit changes the value of every resource, and the version is
// compiled but not released. The time runs from the call that releases it until
// the server reports every resource as deployed. The first deployment, which
// starts the executors, is not counted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/bench/peer"
)

type options struct {
	sizes   []int
	runs    int
	pushes  int
	failing int
	wide    bool
	halts   bool
}

func main() {
	b := &bench{}
	b.AddFlags(flag.CommandLine)
	sizes := flag.String("sizes", "1000,5000", "resources to deploy")
	alone := flag.Bool("alone", false, "leave the reference out")
	flag.IntVar(&b.runs, "runs", 3, "counted deployments of each size")
	flag.IntVar(&b.pushes, "pushes", 5, "counted pushes of one change in the first size; 0: none")
	flag.IntVar(&b.failing, "failing", 1000,
		"resources that always fail, for the latency of a change beside them; 0: none")
	flag.BoolVar(&b.wide, "wide", true, "compare the memory for 100 agents with that for 4")
	flag.BoolVar(&b.halts, "halts", false, "compare what pauses and halts do, and measure nothing")
	flag.Parse()
	if *alone {
		b.ReferencePython = ""
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "deploy: -sizes: %q is not a number of resources\n", text)
			os.Exit(2)
		}
		b.sizes = append(b.sizes, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

// bench compares the servers and collects the rows of the table.
type bench struct {
	options
	peer.Comparison
	rows  []row
	sites int // made so far; each has a folder of its own
}

func (b *bench) run(ctx context.Context) error {
	if b.halts && b.ReferencePython == "" {
		return errors.New("-halts compares with the reference, so it does not go with -alone")
	}
	defer b.Stop()
	if err := b.Start(ctx); err != nil {
		return err
	}
	if b.halts {
		return b.compareHalts(ctx)
	}
	for _, n := range b.sizes {
		if err := b.deploySize(ctx, n); err != nil {
			return err
		}
	}
	if b.pushes > 0 {
		if err := b.comparePushes(ctx); err != nil {
			return err
		}
	}
	if b.wide {
		if err := b.compareAgents(ctx); err != nil {
			return err
		}
	}
	b.report()
	return nil
}

// withLimit bounds one step, so that a server that hangs ends the comparison.
func withLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 20*time.Minute)
}
