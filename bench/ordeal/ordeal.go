// Package ordeal deploys an environment again and again while its server, its
// executors and its database are killed, and checks afterwards that nothing was
// lost, nothing done twice, and nothing left behind.
//
// A round changes part of the resources and pushes. The handlers are real ones:
// each writes a file, and one line before and one after into a journal. The
// journal is also the clock: a fault strikes when the journal has grown by a
// number of lines that the seed gives, from none (the push itself, the compile)
// to the last, whatever the speed of the machine. What was killed is started
// again as an init system would. When all is deployed, files, journal, record,
// processes and folders are held against each other (check.go).
package ordeal

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

// Config is what an ordeal is made of.
type Config struct {
	Binary string   // the program, which is started with `up`
	Dir    string   // empty folder for all that there is; the database's user must reach it
	Python string   // empty: the server's default
	Env    []string // for the server, beside ours

	Rounds    int
	Seed      uint64
	Resources int // default 1,000
	Agents    int // default 4
	// Patience is how long a round may take; default 3 minutes.
	Patience time.Duration
	// Out is told of each round; nil for nobody.
	Out io.Writer
}

// Report is what came of it.
type Report struct {
	Rounds  int
	Faults  map[string]int // by what was killed
	Runs    int            // of handlers, by their journal
	Cut     int            // runs that a fault ended, or whose end it kept from the record
	Lost    int            // resources that did not reach their state, or recorded as deployed and are not
	Doubled int            // runs of what the record already had as deployed
	// Troubles says what is wrong, one line for each thing; empty when all is well.
	Troubles []string
}

func (r *Report) String() string {
	var faults []string
	var total int
	for _, what := range slices.Sorted(maps.Keys(r.Faults)) {
		faults = append(faults, fmt.Sprintf("%s %d", what, r.Faults[what]))
		total += r.Faults[what]
	}
	return fmt.Sprintf(
		"rounds %d, faults %d (%s), handler runs %d, cut off and run again %d, lost %d, doubled %d, other troubles %d",
		r.Rounds,
		total,
		strings.Join(faults, ", "),
		r.Runs,
		r.Cut,
		r.Lost,
		r.Doubled,
		len(r.Troubles)-r.Lost-r.Doubled,
	)
}

func (r *Report) trouble(format string, args ...any) {
	r.Troubles = append(r.Troubles, fmt.Sprintf("round %d: ", r.Rounds)+fmt.Sprintf(format, args...))
}

// ordeal is one under way.
type ordeal struct {
	Config
	random *rand.Rand
	server *peer.Server
	repo   *peer.Repository
	env    string
	site   string // what handlers write
	state  string // of the server
	report Report
	seen   int64             // size of the journal that former rounds have checked
	done   map[string]record // what is recorded as deployed, by resource and value
}

// Run does all rounds. The error is about the ordeal itself; what it found is in the report.
func Run(ctx context.Context, c Config) (Report, error) {
	if c.Resources == 0 {
		c.Resources = 1000
	}
	if c.Agents == 0 {
		c.Agents = 4
	}
	if c.Patience == 0 {
		c.Patience = 3 * time.Minute
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	o := &ordeal{
		Config: c,
		random: rand.New(rand.NewPCG(c.Seed, 0)),
		site:   filepath.Join(c.Dir, "site"),
		state:  filepath.Join(c.Dir, "server", "state"),
	}
	o.done = map[string]record{}
	o.report.Faults = map[string]int{}
	defer func() {
		if o.server != nil {
			o.server.Stop()
		}
	}()
	if err := o.begin(ctx); err != nil {
		return o.report, err
	}
	for n := range c.Rounds {
		o.report.Rounds = n + 1
		if err := o.round(ctx); err != nil {
			return o.report, fmt.Errorf("round %d: %w", n+1, err)
		}
	}
	o.server.Stop()
	o.server = nil
	o.nothingRuns()
	return o.report, nil
}

// begin starts the server and deploys everything once, undisturbed.
func (o *ordeal) begin(ctx context.Context) error {
	for _, dir := range []string{filepath.Join(o.site, "items"), filepath.Join(o.Dir, "server"), filepath.Join(o.Dir, "repo")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(o.journal(), nil, 0o644); err != nil {
		return err
	}
	var err error
	o.repo, err = peer.NewRepository(
		ctx,
		filepath.Join(o.Dir, "repo"),
		peer.Model{Items: o.Resources, Agents: o.Agents, Plugins: o.plugins(0)},
	)
	if err != nil {
		return err
	}
	if err := o.start(ctx); err != nil {
		return err
	}
	if o.env, err = o.server.Bind(ctx, o.repo.Bare, "main"); err != nil {
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
	o.server, err = peer.StartOrdain(ctx, o.Binary, filepath.Join(o.Dir, "server"), o.Python, o.Env...)
	return err
}

// round pushes a change and lets faults strike.
func (o *ordeal) round(ctx context.Context) error {
	began := time.Now()
	share := 0.2 + 0.8*o.random.Float64()
	var items []int
	for i := range o.Resources {
		if o.random.Float64() < share {
			items = append(items, i)
		}
	}
	plugins := ""
	if o.random.IntN(4) == 0 { // another blueprint
		plugins = o.plugins(o.report.Rounds)
	}
	faults := o.plan(2 * len(items))
	asked := o.random.IntN(5) > 0
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
	if err := o.settle(ctx, asked); err != nil {
		return err
	}
	before := len(o.report.Troubles)
	if err := o.check(ctx); err != nil {
		return err
	}
	fmt.Fprintf(
		o.Out,
		"round %d: %d resources changed, %v, %s, %d troubles\n",
		o.report.Rounds,
		len(items),
		faults,
		time.Since(began).Round(100*time.Millisecond),
		len(o.report.Troubles)-before,
	)
	return nil
}

// settle waits until every resource is deployed with its value. Without a
// word, what failed because its executor was killed waits for its retry; asked
// means that somebody asks for it, which is quicker.
func (o *ordeal) settle(ctx context.Context, asked bool) error {
	limit := time.Now().Add(o.Patience)
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
				o.report.Lost++
				o.report.trouble("lost: %s", what)
			}
			return nil
		}
		if asked && err == nil && onlyFailed(missing) {
			_ = o.server.Deploy(ctx, o.env) // a server that is just away is asked again
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func onlyFailed(missing []string) bool {
	return !slices.ContainsFunc(missing, func(s string) bool { return !strings.HasSuffix(s, " is failed") })
}
