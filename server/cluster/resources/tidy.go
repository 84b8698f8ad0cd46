package resources

import (
	"context"
	"slices"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/resources/blob"
)

// tidyBatch is how many contents are looked up at a time.
const tidyBatch = 500

// Start tidies from time to time, until Stop.
func (s *Service) Start(ctx context.Context) error {
	return s.running.Start(ctx, func(context.Context) (func(context.Context), error) {
		return func(ctx context.Context) {
			ticker := time.NewTicker(s.c.TidyEvery)
			defer ticker.Stop()
			for {
				if n, err := s.Tidy(ctx); err != nil && ctx.Err() == nil {
					s.c.Logger.Warn("The contents of plug-in resources could not be tidied", "error", err)
				} else if n > 0 {
					s.c.Logger.Info("Contents that no plug-in resource has were deleted", "count", n)
				}
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
			}
		}, nil
	})
}

// Stop ends it.
func (s *Service) Stop() { s.running.Stop() }

// Tidy deletes contents that no version has: of uploads that were not recorded, of projects that were deleted. Young
// ones may belong to an upload that is about to be recorded, and stay. It returns how many it deleted.
func (s *Service) Tidy(ctx context.Context) (deleted int, err error) {
	before := s.c.Now().Add(-s.c.TidyAge)
	if err := s.c.Blobs.Sweep(ctx, before); err != nil {
		return 0, err
	}
	var batch []string
	flush := func() error {
		n, err := s.forget(ctx, batch, before)
		deleted += n
		batch = batch[:0]
		return err
	}
	err = s.c.Blobs.List(ctx, func(i blob.Info) error {
		if !i.Modified.Before(before) {
			return nil
		}
		if batch = append(batch, i.Hash); len(batch) < tidyBatch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return deleted, err
	}
	return deleted, flush()
}

// forget deletes those of the contents that no version has.
func (s *Service) forget(ctx context.Context, hashes []string, before time.Time) (deleted int, err error) {
	if len(hashes) == 0 {
		return 0, nil
	}
	used, err := s.c.Store.ClusterContentsUsed(ctx, hashes)
	if err != nil {
		return 0, err
	}
	for _, hash := range hashes {
		if slices.Contains(used, hash) {
			continue
		}
		gone := false
		_, err := s.c.Store.ForgetClusterContent(ctx, hash, func(ctx context.Context) error {
			gone = false
			info, err := s.c.Blobs.Stat(ctx, hash)
			if fault.Is(err, fault.NotFound) || err == nil && !info.Modified.Before(before) {
				return nil // somebody was faster, or put it again
			}
			if err == nil {
				err = s.c.Blobs.Delete(ctx, hash)
			}
			gone = err == nil
			return err
		})
		if err != nil {
			return deleted, err
		}
		if gone {
			deleted++
		}
	}
	return deleted, nil
}
