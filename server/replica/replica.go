// Package replica announces this server process to the others that share its database,
// and knows which of them live.
//
//	every 2 s: "I am here" ──▶ table replica ──▶ who was seen in the last 10 s
//	                                └─▶ who was not: its connection with the locks is ended
//
// A process that was killed loses its locks at once, with its connections. One that was
// paused, or whose network broke, keeps them until another one ends that connection. What
// it writes when it goes on carries an old fencing number (package server/store/locks).
// Ages are measured by the clock of the database, so the clocks of the hosts do not matter.
package replica

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
)

const (
	// Beat is how often a process says that it is there.
	Beat = 2 * time.Second
	// Stale is after which time without a sign a process counts as gone.
	Stale = 10 * time.Second
)

// Store is the part of the record that has the replicas; *store.Store implements it.
type Store interface {
	Beat(ctx context.Context, r intent.Replica, within time.Duration) ([]intent.Replica, error)
	EndStale(ctx context.Context, unseen time.Duration) ([]string, error)
	LeaveReplicas(ctx context.Context) error
}

// Config says who this process is. All fields but Address and Share are required.
type Config struct {
	Store   Store
	Logger  *slog.Logger
	Roles   []string
	Version string
	Address string // where it answers; empty when it does not listen
	// Share returns how many environments the process owns and should own; may be nil.
	Share func() (owned, wanted int)
}

// Service announces this process while it runs. It is safe for concurrent use.
type Service struct {
	cfg     Config
	self    intent.Replica
	running service.Runner

	mu   sync.Mutex
	live []intent.Replica
}

// New checks the configuration. Nothing runs before Start.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Logger == nil || len(cfg.Roles) == 0 {
		return nil, fault.New("replica.New", fault.Internal, "replica.Config needs Store, Logger and Roles")
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return &Service{cfg: cfg, self: intent.Replica{
		Name: fmt.Sprintf("%s, process %d", host, os.Getpid()), Roles: cfg.Roles, Version: cfg.Version,
		Address: cfg.Address, Started: time.Now(),
	}}, nil
}

// Start announces the process, and does so again until Stop.
func (s *Service) Start(ctx context.Context) error {
	return s.running.Start(ctx, func(ctx context.Context) (func(context.Context), error) {
		if err := s.beat(ctx); err != nil {
			return nil, err
		}
		return s.run, nil
	})
}

// Stop takes the process off the list.
func (s *Service) Stop() { s.running.Stop() }

func (s *Service) run(ctx context.Context) {
	ticker := time.NewTicker(Beat)
	defer ticker.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), Beat)
			defer cancel()
			if err := s.cfg.Store.LeaveReplicas(leaving); err != nil {
				s.cfg.Logger.Warn("the other processes will find out by themselves that this one ended", "error", err)
			}
			return
		case <-ticker.C:
		}
		err := s.beat(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			s.cfg.Logger.Warn("cannot tell the other processes that this one is alive", "error", err)
		}
		failed = err != nil
	}
}

// beat announces the process, and ends the locks of those that have gone.
func (s *Service) beat(ctx context.Context) error {
	self := s.self
	if s.cfg.Share != nil {
		self.Owned, self.Wanted = s.cfg.Share()
	}
	live, err := s.cfg.Store.Beat(ctx, self, Stale)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.live = live
	s.mu.Unlock()
	if !slices.Contains(s.cfg.Roles, "process") {
		return nil
	}
	gone, err := s.cfg.Store.EndStale(ctx, Stale)
	for _, name := range gone {
		s.cfg.Logger.Warn("a process has not been heard of; its environments are taken over", "process", name)
	}
	return err
}

// Live returns the processes that were seen lately, this one included, oldest first.
func (s *Service) Live() []intent.Replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.live)
}

// With returns how many live processes have a role.
func (s *Service) With(role string) (n int) {
	for _, r := range s.Live() {
		if slices.Contains(r.Roles, role) {
			n++
		}
	}
	return n
}
