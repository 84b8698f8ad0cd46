// Command push measures the whole path side by side: a pushed commit that
// changes one resource in a model of many, until that resource is deployed;
// the first deployment of all; the memory of an idle server. Both servers
// run on this machine at the same time, the same pushes reach both in turn, and
// the table that it prints is what docs/benchmarks.md holds.
//
//	go run ./bench/push -pushes 15
//
// Ordain is timed from the start of `git push`, and finds out by itself. The
// reference is timed from the call that asks it to update and compile, after
// the push: it does not watch repositories.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"ordain.dev/ordain/bench/peer"
)

type options struct {
	resources, pushes int
	python            string
	reference         string
	postgres          string
	keep              bool
}

func main() {
	var o options
	flag.IntVar(&o.resources, "resources", 1000, "resources in the model")
	flag.IntVar(&o.pushes, "pushes", 15, "counted pushes, after one to warm up")
	flag.StringVar(&o.python, "python", "", "interpreter for Ordain; empty: its default")
	flag.StringVar(
		&o.reference,
		"reference-python",
		"python3.13",
		"interpreter for the reference; empty: leave the reference out",
	)
	flag.StringVar(
		&o.postgres,
		"postgres-bin",
		"",
		"folder with PostgreSQL 16 or newer for the reference; empty: fetched",
	)
	flag.BoolVar(&o.keep, "keep", false, "keep the working directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "push:", err)
		os.Exit(1)
	}
}

// contestant is a server with its environment and its own repository.
type contestant struct {
	*peer.Server
	version         string
	repo            *peer.Repository
	env             string
	times           []time.Duration
	first           time.Duration
	idle, idleAll   int64
	bound, boundAll int64
}

func run(ctx context.Context, o options) error {
	dir, remove, err := peer.Directory(o.keep)
	if err != nil {
		return err
	}
	defer remove()
	servers, err := start(ctx, o, dir)
	defer func() {
		for _, s := range servers {
			s.Stop()
		}
	}()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if err := s.deployFirst(ctx, o, dir); err != nil {
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
		if s.bound, s.boundAll, err = s.Memory(); err != nil {
			return err
		}
	}
	report(o, servers)
	return nil
}

// start installs and starts the servers and measures them before they have work.
func start(ctx context.Context, o options, dir string) (servers []*contestant, err error) {
	binary, err := peer.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	ordain, err := peer.StartOrdain(ctx, binary, subdir(dir, "state-ordain"), o.python)
	if err != nil {
		return nil, err
	}
	servers = append(servers, &contestant{Server: ordain, version: "this checkout"})
	if o.reference != "" {
		bin := o.postgres
		if bin == "" {
			if bin, err = peer.FetchPostgres(ctx, subdir(dir, "pg")); err != nil {
				return servers, err
			}
		}
		reference := peer.Reference{Python: o.reference, PostgresBin: bin, Dir: subdir(dir, "reference")}
		version, err := reference.Install(ctx)
		if err != nil {
			return servers, err
		}
		s, err := reference.Start(ctx)
		if err != nil {
			return servers, err
		}
		servers = append(servers, &contestant{Server: s, version: version})
	}
	pause(ctx, 5*time.Second)
	for _, s := range servers {
		if s.idle, s.idleAll, err = s.Memory(); err != nil {
			return servers, err
		}
	}
	return servers, nil
}

// deployFirst binds the server to a repository and times the first deployment.
func (s *contestant) deployFirst(ctx context.Context, o options, dir string) (err error) {
	if s.repo, err = peer.NewRepository(ctx, subdir(dir, "repo-"+s.Name), peer.Model{Items: o.resources, Agents: 4}); err != nil {
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
	if err := s.WaitAll(ctx, s.env, min(o.resources, 1000)); err != nil {
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

func report(o options, servers []*contestant) {
	row := func(name string, cell func(*contestant) string) {
		fmt.Printf("| %s |", name)
		for _, s := range servers {
			fmt.Printf(" %s |", cell(s))
		}
		fmt.Println()
	}
	row("measured", func(s *contestant) string { return s.Name + " (" + s.version + ")" })
	row("---", func(*contestant) string { return "---" })
	row(
		fmt.Sprintf("push to deployed, one of %d changed: median of %d", o.resources, o.pushes),
		func(s *contestant) string {
			slices.Sort(s.times)
			return fmt.Sprintf(
				"%.3f s (%.3f to %.3f)",
				quantile(s.times, 0.5).Seconds(),
				s.times[0].Seconds(),
				s.times[len(s.times)-1].Seconds(),
			)
		},
	)
	row(
		"first deployment, clone and install included",
		func(s *contestant) string { return fmt.Sprintf("%.1f s", s.first.Seconds()) },
	)
	row("idle, no environment: server process", func(s *contestant) string { return mib(s.idle) })
	row("idle, no environment: all processes but the database", func(s *contestant) string { return mib(s.idleAll) })
	row("after the pushes, one environment: server process", func(s *contestant) string { return mib(s.bound) })
	row(
		"after the pushes, one environment: all processes but the database",
		func(s *contestant) string { return mib(s.boundAll) },
	)
	if len(servers) == 2 {
		fmt.Printf(
			"\nratio of the medians: %.1f\n",
			float64(quantile(servers[1].times, 0.5))/float64(quantile(servers[0].times, 0.5)),
		)
	}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func mib(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

func subdir(dir, name string) string {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		panic(err)
	}
	return path
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
