// Command push measures the whole path side by side with the reference: how long
// it takes from pushing a commit that changes one resource of many until that
// resource is deployed, how long the first deployment takes, and how much memory
// an idle server uses. Both servers run on this machine and take turns. It prints
// the table that docs/benchmarks.md holds.
//
//	go run ./bench/push -pushes 15
//
// For Ordain, the time starts with `git push`, since it notices the push by
// itself. For the reference, which does not watch repositories, it starts with the
// call that asks it to update and compile, after the push.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"ordain.dev/ordain/bench/peer"
)

type options struct {
	peer.Comparison
	resources, pushes int
}

func main() {
	var o options
	o.AddFlags(flag.CommandLine)
	flag.IntVar(&o.resources, "resources", 1000, "resources in the model")
	flag.IntVar(&o.pushes, "pushes", 15, "counted pushes, after one to warm up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "push:", err)
		os.Exit(1)
	}
}

// contestant is a server with its environment, its own repository, and its measurements.
type contestant struct {
	*peer.Server
	version         string
	repo            *peer.Repository
	env             string
	times           []time.Duration
	first           time.Duration
	idle, idleAll   int64 // memory before there is an environment: the server alone, and with its children
	bound, boundAll int64 // memory after the pushes
}

func run(ctx context.Context, o *options) error {
	defer o.Stop()
	if err := o.Start(ctx); err != nil {
		return err
	}
	pause(ctx, 5*time.Second)
	var servers []*contestant
	for _, s := range o.Servers {
		c := &contestant{Server: s, version: "this checkout"}
		if len(servers) > 0 {
			c.version = o.Version
		}
		var err error
		if c.idle, c.idleAll, err = s.Memory(); err != nil {
			return err
		}
		servers = append(servers, c)
	}
	for _, s := range servers {
		if err := s.deployFirst(ctx, o); err != nil {
			return err
		}
	}
	for i := range o.pushes + 1 {
		for _, s := range servers {
			took, err := s.push(ctx, (i*37+1)%o.resources)
			if err != nil {
				return err
			}
			if i > 0 {
				s.times = append(s.times, took)
			}
			fmt.Fprintf(os.Stderr, "push %d: %s %.3f s\n", i, s.Name, took.Seconds())
		}
	}
	pause(ctx, 5*time.Second)
	for _, s := range servers {
		var err error
		if s.bound, s.boundAll, err = s.Memory(); err != nil {
			return err
		}
	}
	report(o, servers)
	return nil
}

// deployFirst binds the server to a repository and times the first deployment.
func (s *contestant) deployFirst(ctx context.Context, o *options) (err error) {
	model := peer.Model{Items: o.resources, Agents: 4}
	if s.repo, err = peer.NewRepository(ctx, o.Folder("repo-"+s.Name), model); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	began := time.Now()
	if s.env, err = s.Bind(ctx, s.repo.Bare, "main"); err != nil {
		return err
	}
	if s.Name != "ordain" {
		if err := s.Trigger(ctx, s.env); err != nil {
			return err
		}
	}
	if err := s.WaitDeployedCount(ctx, s.env, o.resources); err != nil {
		return err
	}
	s.first = time.Since(began)
	fmt.Fprintf(os.Stderr, "first deployment: %s %.1f s\n", s.Name, s.first.Seconds())
	return nil
}

// push changes one item and times it until it is deployed.
func (s *contestant) push(ctx context.Context, item int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := s.repo.Change(ctx, item); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.repo.Push(ctx); err != nil {
		return 0, err
	}
	if s.Name != "ordain" {
		began = time.Now()
		if err := s.Trigger(ctx, s.env); err != nil {
			return 0, err
		}
	}
	at, err := s.WaitDeployed(ctx, s.env, s.repo.ID(item), s.repo.Value(item), began, 10*time.Millisecond)
	return at.Sub(began), err
}

func report(o *options, servers []*contestant) {
	row := func(name string, cell func(*contestant) string) {
		fmt.Printf("| %s |", name)
		for _, s := range servers {
			fmt.Printf(" %s |", cell(s))
		}
		fmt.Println()
	}
	row("measured", func(s *contestant) string { return s.Name + " (" + s.version + ")" })
	row("---", func(*contestant) string { return "---" })
	pushed := fmt.Sprintf("push to deployed, one of %d changed: median of %d", o.resources, o.pushes)
	row(pushed, func(s *contestant) string {
		slices.Sort(s.times)
		fastest, slowest := s.times[0], s.times[len(s.times)-1]
		return fmt.Sprintf("%.3f s (%.3f to %.3f)", median(s.times).Seconds(), fastest.Seconds(), slowest.Seconds())
	})
	row("first deployment, clone and install included",
		func(s *contestant) string { return fmt.Sprintf("%.1f s", s.first.Seconds()) })
	row("idle, no environment: server process", func(s *contestant) string { return mib(s.idle) })
	row("idle, no environment: all processes but the database", func(s *contestant) string { return mib(s.idleAll) })
	row("after the pushes, one environment: server process", func(s *contestant) string { return mib(s.bound) })
	row("after the pushes, one environment: all processes but the database",
		func(s *contestant) string { return mib(s.boundAll) })
	if len(servers) == 2 {
		fmt.Printf("\nratio of the medians: %.1f\n",
			float64(median(servers[1].times))/float64(median(servers[0].times)))
	}
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

func mib(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
