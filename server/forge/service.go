package forge

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

const (
	// lookInterval is how often the events of the time before are acted on.
	lookInterval = time.Second
	// pullsInterval is how often a forge is asked for pull requests that no webhook announced.
	pullsInterval = 5 * time.Minute
)

// Keepers is what the service needs of the keepers of environments.
type Keepers interface {
	// Owned lists the environments that this process owns.
	Owned() []intent.EnvironmentID
	// Attend makes the owner of an environment look at its requests.
	Attend(ctx context.Context, env intent.EnvironmentID)
	// CancelDryRun ends a dry run; Conflict when it has ended.
	CancelDryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) error
}

// Git is what the service asks of repositories; *gitsync.Syncer does it.
type Git interface {
	Verify(
		ctx context.Context,
		src gitsync.Source,
		rev intent.Revision,
		policy intent.GitPolicy,
	) (intent.Signer, error)
	Revert(ctx context.Context, src gitsync.Source, commit string) (string, []gitsync.Change, error)
	Plan(ctx context.Context, src gitsync.Source, w gitsync.Write) (gitsync.Plan, error)
	Write(ctx context.Context, src gitsync.Source, w gitsync.Write) (commit string, err error)
}

// Config is what a Service is made of. All fields but PublicURL are needed.
type Config struct {
	Store   *store.Store
	Bus     *bus.Bus
	Logger  *slog.Logger
	Git     Git
	Sources *source.Opener
	Forges  *Opener
	Keepers Keepers
	// PublicURL is the console's address as people reach it; without it no links are given.
	PublicURL string
	// Clusters plans what a version would do to clusters, a text for each that it would change; nil: there are none.
	Clusters func(ctx context.Context, e intent.Environment, version int) ([]string, error)
	// Explain tells who decided the values of a resource in a version; nil: nobody is asked.
	Explain func(context.Context, intent.EnvironmentID, int, intent.ResourceID) (provenance.Explanation, error)
	Now     func() time.Time
}

// Service notices what forges are to be told while it runs; its process sends it.
// Its methods may be called while it does not run: what they record waits.
type Service struct {
	cfg     Config
	running service.Runner
}

// NewService makes a service, which does nothing before Start.
func NewService(cfg Config) *Service {
	return &Service{cfg: cfg}
}

// Start begins to notice what forges are to be told.
func (s *Service) Start(ctx context.Context) error {
	return s.running.Start(ctx, func(context.Context) (func(context.Context), error) { return s.run, nil })
}

// Stop ends that, and waits for its end.
func (s *Service) Stop() { s.running.Stop() }

func (s *Service) publish(env intent.EnvironmentID, topic bus.Topic, id string) {
	s.cfg.Bus.Publish(bus.Event{Environment: env, Topic: topic, ID: id})
}

// run acts once a second on what happened since, until ctx ends.
func (s *Service) run(ctx context.Context) {
	moves := s.cfg.Bus.Subscribe(concernsForges)
	defer moves.Close()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	deployed, stale := map[intent.EnvironmentID]bool{}, map[intent.EnvironmentID]bool{}
	asked := map[intent.EnvironmentID]time.Time{}
	var swept time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-moves.Events():
			switch e.Topic {
			case bus.Lagged: // anything may have happened
				for _, env := range s.cfg.Keepers.Owned() {
					deployed[env], stale[env] = true, true
				}
			case bus.Resource, bus.Version:
				deployed[e.Environment], stale[e.Environment] = true, true
			case bus.DryRun:
				stale[e.Environment] = true
			}
		case <-ticker.C:
			for _, env := range s.cfg.Keepers.Owned() { // the owners of the others do the same for those
				if deployed[env] {
					s.tellDeployment(ctx, env)
				}
			}
			clear(deployed)
			for _, env := range s.lookForPulls(ctx, asked) {
				stale[env] = true
			}
			s.renewPreviews(ctx, stale)
			clear(stale)
			if time.Since(swept) >= outboxInterval {
				swept = time.Now()
				s.sweep(ctx)
			}
		}
	}
}

func concernsForges(e bus.Event) bool {
	switch e.Topic {
	case bus.Compile, bus.Version, bus.DryRun, bus.Resource, bus.Pull, bus.Lagged:
		return true
	}
	return false
}

// tellDeployment writes to the outbox how far the deployment of an environment
// is, when that changed.
func (s *Service) tellDeployment(ctx context.Context, env intent.EnvironmentID) {
	err := s.cfg.Store.TellDeployment(ctx, env, s.cfg.Now())
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
		s.cfg.Logger.Warn("cannot read yet what a forge is to be told of a deployment",
			"environment", env, "error", err)
	}
}

// sweep has what servers of older versions queued sent, too.
func (s *Service) sweep(ctx context.Context) {
	if err := s.cfg.Store.ScheduleForges(ctx); err != nil && ctx.Err() == nil && !fault.Is(err, fault.Unavailable) {
		s.cfg.Logger.Error("cannot read what forges are to be told", "error", err)
	}
}

// lookForPulls asks the forges of the environments that are owned here, every
// pullsInterval, for pull requests that no webhook announced. It returns those
// environments. The first time it also looks how far deployments are.
func (s *Service) lookForPulls(
	ctx context.Context,
	asked map[intent.EnvironmentID]time.Time,
) (due []intent.EnvironmentID) {
	now := s.cfg.Now()
	for _, env := range s.cfg.Keepers.Owned() {
		if now.Sub(asked[env]) < pullsInterval {
			continue
		}
		due = append(due, env)
		if asked[env].IsZero() {
			s.tellDeployment(ctx, env)
		}
		asked[env] = now
		e, err := s.cfg.Store.Environment(ctx, env)
		if err != nil || e.Text("pull_previews") == "off" || e.Halted {
			continue
		}
		if err := s.cfg.Store.AskForge(ctx, env, 0, now); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("cannot ask for pull requests yet", "environment", env, "error", err)
		}
	}
	return due
}

// page returns the address of a page of the console as people outside reach it;
// empty when the server was not told.
func (s *Service) page(path string) string {
	if s.cfg.PublicURL == "" {
		return ""
	}
	return strings.TrimSuffix(s.cfg.PublicURL, "/") + path
}
