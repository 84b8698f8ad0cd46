package server

import (
	"context"
	"path/filepath"
	"time"

	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
)

// openStore starts the private database, unless another one is configured, and opens
// the store. It restarts the private database whenever it ends, until background ends.
func (s *Server) openStore(ctx, background context.Context) (records *store.Store, err error) {
	url := s.cfg.Options.DatabaseURL
	if url == "" {
		err := s.step("PostgreSQL", func() error {
			db, err := postgres.Start(ctx, postgres.Config{
				DataDir:   filepath.Join(s.layout.Postgres(), "data"),
				SocketDir: filepath.Join(s.layout.Postgres(), "socket"),
				CacheDir:  filepath.Join(s.layout.CacheDir(), "postgres"),
				BinDir:    s.cfg.Options.PostgresBin,
				Python:    s.cfg.Options.Python,
				Logger:    s.log,
			})
			if err != nil {
				return err
			}
			url = db.URL()
			password, err := db.Password()
			if err != nil {
				return err
			}
			s.hidden = append(s.hidden, password)
			s.undo = append(s.undo, func() { s.stopDatabase(db) })
			watching, stop := context.WithCancel(background)
			s.undo = append(s.undo, stop)
			s.wg.Go(func() { s.keepDatabase(watching, db) })
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if password := passwordOf(url); password != "" {
		s.hidden = append(s.hidden, password)
	}
	err = s.step("tables", func() error {
		records, err = store.Open(ctx, store.Config{URL: url, Logger: s.log})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, records.Close)
	return records, nil
}

func (s *Server) stopDatabase(db *postgres.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := db.Stop(ctx); err != nil {
		s.log.Error("the database did not stop", "error", err)
	}
}

// keepDatabase restarts the private database whenever it ends by itself.
func (s *Server) keepDatabase(ctx context.Context, db *postgres.Server) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.Done():
		}
		for wait := 200 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
			if ctx.Err() != nil {
				return
			}
			s.log.Error("the database ended; starting it again", "last words", db.LastWords())
			err := db.Restart(ctx)
			if err == nil {
				s.log.Info("the database runs again")
				break
			}
			if ctx.Err() != nil {
				return
			}
			s.log.Error("the database does not start", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}
