// Command deploy measures deployments side by side with the reference: handlers
// that do nothing, so that what is timed is the server, its scheduler and its
// executors. Both servers run on this machine and take turns.
//
//	go run ./bench/deploy                            # installs the reference; 1,000 and 5,000 resources on four agents
//	go run ./bench/deploy -alone -sizes 1000 -wide   # Ordain only, with 100 agents as well
//
// For each size every resource gets another value, the version is compiled and
// not released; then it is timed from the call that releases it until the server says
// that all are deployed. Executors are warm: the first deployment is not counted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/bench/peer"
)

type options struct {
	sizes     []int
	runs      int
	pushes    int
	failing   int
	wide      bool
	python    string
	reference string
	postgres  string
	venv      string
	keep      bool
}

func main() {
	var o options
	sizes := flag.String("sizes", "1000,5000", "resources to deploy")
	alone := flag.Bool("alone", false, "leave the reference out")
	flag.IntVar(&o.runs, "runs", 3, "counted deployments of each size")
	flag.IntVar(&o.pushes, "pushes", 5, "counted pushes of one change in the first size; 0: none")
	flag.IntVar(
		&o.failing,
		"failing",
		1000,
		"resources that always fail, for the latency of a change beside them; 0: none",
	)
	flag.BoolVar(&o.wide, "wide", true, "compare the memory for 100 agents with that for 4")
	flag.StringVar(&o.python, "python", "", "interpreter for Ordain; empty: its default")
	flag.StringVar(&o.reference, "reference-python", "python3.13", "interpreter for the reference")
	flag.StringVar(&o.venv, "reference-venv", "", "virtual environment that has inmanta-core already")
	flag.StringVar(
		&o.postgres,
		"postgres-bin",
		"",
		"folder with PostgreSQL 16 or newer for the reference; empty: fetched",
	)
	flag.BoolVar(&o.keep, "keep", false, "keep the working directory")
	flag.Parse()
	if *alone {
		o.reference = ""
	}
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "deploy: -sizes: %q is not a number of resources\n", text)
			os.Exit(2)
		}
		o.sizes = append(o.sizes, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, remove, err := peer.Directory(o.keep)
	if err != nil {
		return err
	}
	defer remove()
	b := &bench{options: o, dir: dir}
	defer b.stop()
	if err := b.start(ctx); err != nil {
		return err
	}
	for _, n := range o.sizes {
		if err := b.deploySize(ctx, n); err != nil {
			return err
		}
	}
	if o.pushes > 0 {
		if err := b.comparePushes(ctx); err != nil {
			return err
		}
	}
	if o.wide {
		if err := b.compareAgents(ctx); err != nil {
			return err
		}
	}
	b.report()
	return nil
}

// bench is one comparison under way.
type bench struct {
	options
	dir     string
	servers []*peer.Server
	rows    []row
	places  int // folders for repositories given out so far
}

// start installs and starts the servers.
func (b *bench) start(ctx context.Context) error {
	binary, err := peer.Build(ctx, b.dir)
	if err != nil {
		return err
	}
	ordain, err := peer.StartOrdain(ctx, binary, b.folder("state-ordain"), b.python)
	if err != nil {
		return err
	}
	b.servers = append(b.servers, ordain)
	if b.reference == "" {
		return nil
	}
	bin := b.postgres
	if bin == "" {
		if bin, err = peer.FetchPostgres(ctx, b.folder("pg")); err != nil {
			return err
		}
	}
	reference := peer.Reference{Python: b.reference, PostgresBin: bin, Venv: b.venv, Dir: b.folder("reference")}
	version, err := reference.Install(ctx)
	if err != nil {
		return err
	}
	s, err := reference.Start(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "the reference is", version)
	b.servers = append(b.servers, s)
	return nil
}

func (b *bench) stop() {
	for _, s := range b.servers {
		s.Stop()
	}
}

// folder makes a folder that both databases' users can reach.
func (b *bench) folder(name string) string {
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		panic(err)
	}
	return path
}

// limit bounds one step, so that a server that hangs ends the comparison.
func limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 20*time.Minute)
}
