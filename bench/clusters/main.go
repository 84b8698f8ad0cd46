// Command clusters measures the cluster service: its record, its desk, and provisioners
// that are processes of their own, over TCP.
//
//	go run ./bench/clusters                       # throughput: 2,000 machines, 20 provisioners of 4 projects
//	go run ./bench/clusters -rounds 20            # rounds with provisioners killed at random
//
// Throughput: plug-ins do nothing, so what is measured is the server. It prints tasks
// per second, the memory of the server, and how evenly projects were served.
//
// Rounds: plug-ins make machines in a registry that, as a cloud does, makes one whenever
// it is asked. Provisioners are killed all the time, also between its answer and theirs.
// In the end every machine has to belong to a node, and no node may have had two.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are those of the command line.
type options struct {
	projects     int
	clusters     int // of each project
	nodes        int // of each cluster
	provisioners int // of all projects
	room         int // of each
	rounds       int
	seed         uint64
}

func main() {
	var o options
	flag.IntVar(&o.projects, "projects", 4, "projects")
	flag.IntVar(&o.clusters, "clusters", 5, "clusters of each project")
	flag.IntVar(&o.nodes, "nodes", 100, "nodes of each cluster")
	flag.IntVar(&o.provisioners, "provisioners", 20, "provisioner processes, of all projects together")
	flag.IntVar(&o.room, "room", 100, "tasks that each works on at a time")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds with random kills, with small clusters, instead of the throughput")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of what is random in rounds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := measure
	switch {
	case os.Getenv(deskVariable) != "":
		do = provision
	case o.rounds > 0:
		do = runRounds
	}
	if err := do(ctx, o); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}
