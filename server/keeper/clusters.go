package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/build"
)

// Clusters reads the cluster files of a commit. *cluster.Service does.
type Clusters interface {
	// Concerned reports whether a folder of a project has cluster files, or the environment has clusters.
	Concerned(ctx context.Context, e intent.Environment, project fs.FS) (bool, error)
	// Read checks and solves the files, and returns what is stored with the version.
	Read(ctx context.Context, e intent.Environment, project fs.FS, out func(line string)) (json.RawMessage, error)
}

// readClusters reads the cluster files of the commit. Without any there is no such stage.
func (c *compilation) readClusters(ctx context.Context) error {
	if c.cfg.Clusters == nil || !c.compile.Export {
		return nil
	}
	// What is in the checkout is hostile: a link must not lead out of it.
	root, err := os.OpenRoot(c.job.ProjectDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a later stage says so
	}
	if err != nil {
		return fault.Disk("keeper.readClusters", c.job.ProjectDir, err)
	}
	defer root.Close()
	var concerned bool
	if err := c.patiently(ctx, "look for clusters", func() (err error) {
		concerned, err = c.cfg.Clusters.Concerned(ctx, c.e, root.FS())
		return err
	}); err != nil || !concerned {
		return err
	}
	return c.stage(ctx, intent.StageClusters, func(out build.Output) (string, error) {
		return "", c.patiently(ctx, "read the cluster files", func() (err error) {
			c.clusters, err = c.cfg.Clusters.Read(ctx, c.e, root.FS(), func(line string) { out(line, "") })
			return err
		})
	})
}
