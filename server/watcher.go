package server

import (
	"context"
	"log/slog"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// watcher fits gitsync's watcher to what control asks for: control tells it
// what to watch, and it tells control what moved.
type watcher struct {
	*gitsync.Watcher
	control *control.Control
}

func newWatcher(syncer *gitsync.Syncer, log *slog.Logger) (*watcher, error) {
	w := &watcher{}
	var err error
	w.Watcher, err = gitsync.NewWatcher(
		gitsync.WatcherConfig{Tips: syncer, Logger: log, OnMove: w.moved, OnLook: w.looked},
	)
	return w, err
}

// start begins to watch on behalf of a control.
func (w *watcher) start(ctx context.Context, c *control.Control) error {
	w.control = c
	return w.Watcher.Start(ctx)
}

func (w *watcher) moved(ctx context.Context, m gitsync.Move) error {
	return w.control.SourceMoved(ctx, m.Environment, m.Commit, m.Kind, m.Message)
}

func (w *watcher) looked(ctx context.Context, env intent.EnvironmentID, err error) {
	w.control.Looked(ctx, env, err)
}

// Watch implements control.Watcher.
func (w *watcher) Watch(env intent.EnvironmentID, s control.GitSource, interval time.Duration, seen string) {
	w.Watcher.Watch(env, source(s), interval, seen)
}
