package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

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
	// View returns what the model of an environment may see of its clusters, by name, and what identifies it.
	View(ctx context.Context, env intent.EnvironmentID) (all map[string]json.RawMessage, digest string, err error)
	// Busy reports whether a job runs for one of the environment's clusters.
	Busy(ctx context.Context, env intent.EnvironmentID) (bool, error)
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

// viewClusters reads what the model may see of clusters.
func (c *compilation) viewClusters(ctx context.Context) error {
	if c.cfg.Clusters == nil {
		return nil
	}
	return c.patiently(ctx, "look at the clusters", func() (err error) {
		c.job.Clusters, c.clusterView, err = c.cfg.Clusters.View(ctx, c.env)
		return err
	})
}

// ClustersChanged requests a compile if the newest version saw other clusters than there are now. It works in the
// background, so that the caller does not wait. why is for people, such as the job that ended.
func (r *Registry) ClustersChanged(env intent.EnvironmentID, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx := r.ctx; ctx != nil && ctx.Err() == nil {
		r.ending.Go(func() { r.CompileForClusters(ctx, env, why) })
	}
}

// CompileForClusters is ClustersChanged for a caller that can wait. It logs errors.
func (r *Registry) CompileForClusters(ctx context.Context, env intent.EnvironmentID, why string) {
	if r.cfg.Clusters == nil {
		return
	}
	err := r.compileForClusters(ctx, env, why)
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
		r.cfg.Logger.Error("cannot tell whether the model saw other clusters", "environment", env, "error", err)
	}
}

func (r *Registry) compileForClusters(ctx context.Context, env intent.EnvironmentID, why string) error {
	newest, err := r.cfg.Store.Versions(ctx, env, intent.ListQuery{Limit: 1, Sort: "version", Desc: true})
	if err != nil || len(newest.Items) == 0 {
		return err
	}
	from := newest.Items[0].Provenance
	seen := from.Clusters
	if seen == "" || from.RolledBack != nil {
		return nil // its model does not look at clusters, or a person went back to it, whose next commit compiles
	}
	_, now, err := r.cfg.Clusters.View(ctx, env)
	if err != nil || now == seen {
		return err
	}
	e, err := r.cfg.Store.Environment(ctx, env)
	if err != nil || e.Source.URL == "" {
		return err
	}
	open, err := r.cfg.Store.OpenCompiles(ctx, env)
	if err != nil || slices.ContainsFunc(open, willSeeAll) {
		return err
	}
	message := fmt.Sprintf("the model uses the environment's clusters, and they changed: %s", why)
	_, _, err = r.Enqueue(ctx, e, CompileRequest{
		Trigger:  intent.Trigger{Type: intent.TriggerCluster, Message: message},
		Metadata: map[string]any{"type": intent.TriggerCluster, "message": message},
	})
	return err
}

// lookAgain requests another compile if a job ended while the compile ran, whose version nobody could compare then. A
// job that still runs does so at its end.
func (c *compilation) lookAgain(ctx context.Context) {
	if c.preview || c.version == nil || c.doc.Modules[intent.ClusterModule] == "" || c.cfg.Clusters == nil {
		return
	}
	busy, err := c.cfg.Clusters.Busy(ctx, c.env)
	if err != nil {
		c.log.Warn("cannot tell whether clusters changed during the compile", "error", err)
	}
	if err == nil && !busy {
		c.CompileForClusters(ctx, c.env, "during the last compile")
	}
}

// willSeeAll reports whether a compile that is requested will read facts and clusters as they are now.
func willSeeAll(o intent.Compile) bool { return o.Started == nil && o.Export && !o.Partial }
