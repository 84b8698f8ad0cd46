package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/bench/peer"
)

//go:embed handler.py
var handler string

// config says how an ordeal is run.
type config struct {
	binary string   // the program to test, which is started with `up`
	dir    string   // an empty folder for all files; the database's user must be able to reach it
	python string   // empty: the server's default
	env    []string // added to the server's environment

	rounds    int
	seed      uint64
	resources int
	agents    int
	patience  time.Duration // how long a round may take
	out       io.Writer     // one line is written for each round
}

// report counts what happened, and lists what went wrong.
type report struct {
	rounds   int
	faults   map[string]int // by victim
	runs     int            // of handlers, according to the journal
	cut      int            // handler runs that a fault ended, or whose end it kept from being recorded
	lost     int            // resources that did not reach their state, or that are recorded as deployed and are not
	doubled  int            // handler runs of resources that were already recorded as deployed
	troubles []string       // one line for each thing that went wrong
}

func (r *report) String() string {
	var faults []string
	var total int
	for _, what := range slices.Sorted(maps.Keys(r.faults)) {
		faults = append(faults, fmt.Sprintf("%s %d", what, r.faults[what]))
		total += r.faults[what]
	}
	return fmt.Sprintf(
		"rounds %d, faults %d (%s), handler runs %d, cut off and run again %d, lost %d, doubled %d, other troubles %d",
		r.rounds, total, strings.Join(faults, ", "), r.runs, r.cut, r.lost, r.doubled, len(r.troubles)-r.lost-r.doubled)
}

func (r *report) trouble(format string, args ...any) {
	r.troubles = append(r.troubles, fmt.Sprintf("round %d: ", r.rounds)+fmt.Sprintf(format, args...))
}

// ordeal is the state of a run.
type ordeal struct {
	config
	random *rand.Rand
	server *peer.Server
	repo   *peer.Repository
	envID  string
	site   string // the folder that handlers write to
	state  string // the server's state directory
	report report
	seen   int64             // bytes of the journal that were checked in earlier rounds
	done   map[string]record // the recorded deployments, by resource and value
}

// runOrdeal runs all rounds. Its error means that the ordeal could not be run;
// what the ordeal found is in the report.
func runOrdeal(ctx context.Context, c config) (report, error) {
	o := &ordeal{
		config: c,
		random: rand.New(rand.NewPCG(c.seed, 0)),
		site:   filepath.Join(c.dir, "site"),
		state:  filepath.Join(c.dir, "server", "state"),
	}
	o.done = map[string]record{}
	o.report.faults = map[string]int{}
	defer func() {
		if o.server != nil {
			o.server.Stop()
		}
	}()
	if err := o.begin(ctx); err != nil {
		return o.report, err
	}
	for n := range c.rounds {
		o.report.rounds = n + 1
		if err := o.round(ctx); err != nil {
			return o.report, fmt.Errorf("round %d: %w", n+1, err)
		}
	}
	o.server.Stop()
	o.server = nil
	o.checkNothingRuns()
	return o.report, nil
}

// begin starts the server and deploys everything once, without faults.
func (o *ordeal) begin(ctx context.Context) error {
	items, server, repo := filepath.Join(o.site, "items"), filepath.Join(o.dir, "server"), filepath.Join(o.dir, "repo")
	for _, dir := range []string{items, server, repo} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(o.journal(), nil, 0o644); err != nil {
		return err
	}
	var err error
	o.repo, err = peer.NewRepository(ctx, repo,
		peer.Model{Items: o.resources, Agents: o.agents, Plugins: o.plugins(0)})
	if err != nil {
		return err
	}
	if err := o.start(ctx); err != nil {
		return err
	}
	if o.envID, err = o.server.Bind(ctx, o.repo.Bare, "main"); err != nil {
		return err
	}
	if err := o.settle(ctx, true); err != nil {
		return err
	}
	return o.check(ctx)
}

func (o *ordeal) plugins(edition int) string {
	return strings.NewReplacer("@SITE@", o.site, "@EDITION@", strconv.Itoa(edition)).Replace(handler)
}

func (o *ordeal) journal() string { return filepath.Join(o.site, "journal") }

func (o *ordeal) start(ctx context.Context) (err error) {
	// The handlers write to the machine of the server, as its user.
	env := append(slices.Clone(o.env), "ORDAIN_ISOLATION_ALLOW_WRITE="+o.site, "ORDAIN_ISOLATION_FIRST_USER=0")
	o.server, err = peer.StartOrdain(ctx, o.binary, filepath.Join(o.dir, "server"), o.python, env...)
	return err
}

// round pushes a change, lets the faults strike, and checks what came of it.
func (o *ordeal) round(ctx context.Context) error {
	began := time.Now()
	share := 0.2 + 0.8*o.random.Float64()
	var items []int
	for i := range o.resources {
		if o.random.Float64() < share {
			items = append(items, i)
		}
	}
	plugins := ""
	if o.random.IntN(4) == 0 { // other handler code makes another blueprint
		plugins = o.plugins(o.report.rounds)
	}
	faults := o.plan(2 * len(items))
	ask := o.random.IntN(5) > 0
	if err := o.repo.ChangeSome(ctx, items, plugins); err != nil {
		return err
	}
	if err := o.repo.Push(ctx); err != nil {
		return err
	}
	for _, f := range faults {
		if err := o.strike(ctx, f); err != nil {
			return err
		}
	}
	if err := o.settle(ctx, ask); err != nil {
		return err
	}
	before := len(o.report.troubles)
	if err := o.check(ctx); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "round %d: %d resources changed, %v, %s, %d troubles\n",
		o.report.rounds, len(items), faults,
		time.Since(began).Round(100*time.Millisecond), len(o.report.troubles)-before)
	return nil
}

// settle waits until every resource is deployed with its value. A resource that
// failed because its executor was killed is retried by the server after a while;
// with ask, settle asks for the retry, which is quicker.
func (o *ordeal) settle(ctx context.Context, ask bool) error {
	limit := time.Now().Add(o.patience)
	for {
		missing, err := o.missing(ctx)
		if err == nil && missing == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(limit) {
			if err != nil {
				return fmt.Errorf("the server does not answer: %w", err)
			}
			for _, what := range missing {
				o.report.lost++
				o.report.trouble("lost: %s", what)
			}
			return nil
		}
		if ask && err == nil && onlyFailed(missing) {
			_ = o.server.Deploy(ctx, o.envID) // if the server is down at the moment, the next loop asks again
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func onlyFailed(missing []string) bool {
	return !slices.ContainsFunc(missing, func(s string) bool { return !strings.HasSuffix(s, " is failed") })
}
