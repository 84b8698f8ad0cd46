package control

import (
	"context"
	"log/slog"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/comparison"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// Git reads repositories; *gitsync.Syncer implements it.
type Git interface {
	// Blame returns the author of each line of a file at a commit that was fetched,
	// or NotFound if the commit has no such file.
	Blame(ctx context.Context, src gitsync.Source, commit, path string) (provenance.Blame, error)
}

// Config holds the parts that a Control needs. All fields but Remotes and Now are required.
type Config struct {
	Store   *store.Store
	Bus     *bus.Bus
	Logger  *slog.Logger
	Git     Git
	Sources *source.Opener
	Keepers *keeper.Registry
	Forge   *forge.Service
	// Remotes looks into the repository of an environment before it is made; nil: nothing does.
	Remotes Remotes
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Control implements the server's verbs. It is safe for concurrent use.
type Control struct {
	cfg     Config
	authors *authors
	tables  tables
	// comparisons keeps what differs between versions that pages compare.
	comparisons *comparison.Service
}

// New returns a Control, or a fault if a required part is missing.
func New(cfg Config) (*Control, error) {
	switch {
	case cfg.Store == nil, cfg.Bus == nil, cfg.Logger == nil, cfg.Git == nil,
		cfg.Sources == nil, cfg.Keepers == nil, cfg.Forge == nil:
		return nil, fault.New("control.New", fault.Internal, "a part of the server is missing from control.Config")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Control{cfg: cfg, authors: newAuthors(), comparisons: comparison.New(cfg.Store)}, nil
}

// Close ends what a Control does in the background, and waits for its end.
func (c *Control) Close() { c.authors.stop() }

func (c *Control) publish(env intent.EnvironmentID, topic bus.Topic, id string) {
	c.cfg.Bus.Publish(bus.Event{Environment: env, Topic: topic, ID: id})
}

// ask records a request to the owner of an environment, and lets it look.
func (c *Control) ask(ctx context.Context, env intent.EnvironmentID, kind intent.RequestKind, detail any) error {
	if err := c.cfg.Store.Ask(ctx, env, kind, detail); err != nil {
		return err
	}
	c.cfg.Keepers.Attend(ctx, env)
	return nil
}

// changed notifies pages and the owner of a change of an environment, its settings or its secrets, which was recorded
// with a request to look at it.
func (c *Control) changed(ctx context.Context, env intent.EnvironmentID) {
	c.publish(env, bus.Environment, "")
	c.cfg.Keepers.Attend(ctx, env)
}

// now returns the time with the precision of the database.
func (c *Control) now() time.Time { return c.cfg.Now().UTC().Truncate(time.Microsecond) }
