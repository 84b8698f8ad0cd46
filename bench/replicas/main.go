// Command replicas runs a whole installation of several server processes, and breaks
// it again and again while people push:
//
//	go run ./bench/replicas                              # 30 rounds, 20 environments
//	go run ./bench/replicas -rounds 5 -seed 7            # the same faults each time
//	go run ./bench/replicas -takeover 20                 # how long a take-over takes
//
// The installation is real: PostgreSQL, NATS, three processes with the role process, two
// with the role api, one with the role agent, remote agents that reach it through a
// network that can be cut, and one Git repository for each environment. In a round every
// environment gets a push, while some of this happens: processes and agents are killed
// (SIGKILL) or paused for 20 seconds (SIGSTOP), the bus is shut down and replaced by a new
// one, the network of the agents stops passing anything on. What was killed is started
// again after a while, as an init system would do it. When all is over, every resource has
// to be deployed as it was pushed, no handler may have written the same value twice, and
// nothing may be left under way.
//
// With -takeover it measures instead: it kills the process that owns most environments,
// asks for a repair of each, and counts until the first handler of each runs elsewhere.
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
	c := config{out: os.Stdout, pause: 20 * time.Second}
	takeovers := 0
	flag.IntVar(&c.rounds, "rounds", 30, "rounds")
	flag.Uint64Var(&c.seed, "seed", 1, "seed of the faults")
	flag.IntVar(&c.environments, "environments", 20, "environments")
	flag.IntVar(&c.items, "resources", 20, "resources of each environment")
	flag.IntVar(&c.agents, "agents", 50, "remote agents, at most three of each environment")
	flag.DurationVar(&c.patience, "patience", 5*time.Minute, "how long everything may take to be deployed again")
	flag.IntVar(&takeovers, "takeover", 0, "measure so many take-overs instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, c, takeovers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "replicas:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, c config, takeovers int) (ok bool, err error) {
	if c.dir, err = peer.Directory(); err != nil {
		return false, err
	}
	defer func() {
		if ok && err == nil {
			_ = os.RemoveAll(c.dir)
		} else {
			fmt.Println("the files are kept in", c.dir)
		}
	}()
	if c.binary, err = peer.Build(ctx, c.dir); err != nil {
		return false, err
	}
	in, err := newInstallation(ctx, c)
	if err != nil {
		return false, err
	}
	defer in.stop()
	if takeovers > 0 {
		return true, in.measureTakeovers(ctx, takeovers)
	}
	troubles, err := in.rounds(ctx)
	for _, t := range troubles {
		fmt.Println(t)
	}
	fmt.Printf("%d rounds; %s; %d troubles\n", c.rounds, in.struck(), len(troubles))
	return len(troubles) == 0, err
}
