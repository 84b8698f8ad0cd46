package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/store"
)

func (c *compilation) makeVenv(ctx context.Context) error {
	defer c.disk.forget(c.env)
	return c.stage(ctx, intent.StageVenv, func(out build.Output) (string, error) {
		return c.cfg.Builder.Venv(ctx, c.job, out)
	})
}

func (c *compilation) install(ctx context.Context) error {
	return c.stage(ctx, intent.StageInstall, func(out build.Output) (string, error) {
		job := c.job
		if !c.preview {
			job.Modules = func(urls map[string]string) { c.recordModules(ctx, urls) }
		}
		return c.cfg.Builder.Install(ctx, job, out)
	})
}

// recordModules records the repositories of a project's modules, so that pushes to
// them start a compile of the environment.
func (c *compilation) recordModules(ctx context.Context, urls map[string]string) {
	if err := c.cfg.Store.SetModules(ctx, c.env, urls); err != nil {
		c.log.Warn("cannot record the repositories of modules; pushes to them will not start a compile", "error", err)
	}
}

// compileModel runs the compiler.
func (c *compilation) compileModel(ctx context.Context) error {
	return c.stage(ctx, intent.StageCompile, func(out build.Output) (command string, err error) {
		if c.job.Parameters, err = c.parameters(ctx); err != nil {
			return "", err
		}
		if err := c.viewClusters(ctx); err != nil {
			return "", err
		}
		if c.doc, command, err = c.cfg.Builder.Compile(ctx, c.job, out); err != nil {
			return command, err
		}
		if len(c.doc.Diagnostics) > 0 {
			if c.diags, err = json.Marshal(c.doc.Diagnostics); err != nil {
				return command, err
			}
		}
		if !c.doc.Success {
			return command, errModel
		}
		return command, nil
	})
}

// parameters reads all parameters and facts, for plug-ins that ask for them.
func (c *compilation) parameters(ctx context.Context) ([]intent.Parameter, error) {
	var all []intent.Parameter
	for _, facts := range []bool{false, true} {
		q := intent.ListQuery{Limit: 1000, Sort: "name"}
		for {
			page, err := c.cfg.Store.Parameters(ctx, c.env, facts, q)
			if err != nil {
				return nil, err
			}
			all = append(all, page.Items...)
			if page.After == 0 || len(page.Items) == 0 {
				break
			}
			last := page.Items[len(page.Items)-1]
			q.After = &intent.Bound{Value: &last.Name, ID: last.ID.String()}
		}
	}
	return all, nil
}

// storeVersion records the version and the files that it refers to. From here on the
// compilation can no longer be cancelled.
func (c *compilation) storeVersion(ctx context.Context) error {
	if err := c.ending.finalize(); err != nil || !c.compile.Export {
		return err
	}
	return c.stage(ctx, intent.StageExport, func(out build.Output) (string, error) {
		v, err := c.newVersion(c.doc)
		if err != nil {
			return "", err
		}
		if v.Preview = c.preview; !c.preview {
			if err := c.applyProjectSettings(ctx, c.doc.Settings); err != nil {
				return "", err
			}
		}
		var number int
		if err := c.patiently(ctx, "store the version", func() (err error) {
			if err := c.storeFiles(ctx, c.doc); err != nil {
				return err
			}
			number, err = c.cfg.Store.StoreVersion(ctx, v, c.cfg.Now())
			return err
		}); err != nil {
			return "", err
		}
		c.version = &number
		c.publish(c.env, bus.Version, strconv.Itoa(number))
		what := "resources"
		if v.Partial != nil {
			what = "resources of the resource sets that changed"
		}
		out(fmt.Sprintf("Committed %d %s with version %d\n", len(v.Resources), what, number), "")
		return "", nil
	})
}

// applyProjectSettings applies the environment_settings of project.yml. It runs before
// the version is stored, because they decide whether the version is released.
func (c *compilation) applyProjectSettings(ctx context.Context, settings map[string]any) error {
	changed := false
	err := c.patiently(ctx, "set the settings of project.yml", func() (err error) {
		changed, err = c.protectSettings(ctx, c.e, settings)
		return err
	})
	if err != nil {
		return fault.Wrap("keeper.applyProjectSettings", fault.KindOf(err), err).
			Say("environment_settings of project.yml cannot be set")
	}
	if !changed {
		return nil
	}
	// This is the only second read of the environment: its settings changed, and they
	// decide whether the version is released.
	return c.patiently(ctx, "read the settings", func() error {
		e, err := c.cfg.Store.Environment(ctx, c.env)
		if err == nil {
			c.e = e
		}
		return err
	})
}

// storeFiles stores those files of a document that the store does not have yet.
func (c *compilation) storeFiles(ctx context.Context, doc *export.Document) error {
	return StoreFiles(ctx, c.cfg.Store, c.e.ProjectID, doc)
}

// newVersion converts an exported document to the version to store.
func (c *compilation) newVersion(doc *export.Document) (intent.NewVersion, error) {
	v, err := NewVersion(c.env, c.provenance(doc), doc)
	v.Clusters = c.clusters
	return v, err
}

// provenance returns the origin of the version.
func (c *compilation) provenance(doc *export.Document) intent.Provenance {
	rev := c.compile.Revision
	view := c.clusterView
	if _, uses := doc.Modules[intent.ClusterModule]; !uses {
		view = ""
	}
	return intent.Provenance{
		Clusters: view,
		Compile:  c.compile.ID, Trigger: c.compile.Trigger, Variables: c.compile.Variables,
		Commit: rev.Commit, Branch: rev.Branch, Author: rev.Author, Email: rev.Email, Subject: rev.Subject,
		CommitTime: rev.Time.UTC().Truncate(time.Second), Signer: rev.Signer.Name, SignerKey: rev.Signer.Key,
		Modules: doc.Modules, CompilerPython: doc.Python, Ordain: c.cfg.Version,
		UnmanagedAgents: doc.UnmanagedAgents,
	}
}

// release makes the new version the intent, if the environment deploys automatically.
func (c *compilation) release(ctx context.Context) error {
	if !c.compile.Export || !c.e.Bool("auto_deploy") {
		return nil
	}
	number := *c.version
	return c.stage(ctx, intent.StageRelease, func(out build.Output) (string, error) {
		err := c.patiently(ctx, "release the version", func() error {
			active, err := c.cfg.Store.ActiveVersion(ctx, c.env)
			if err != nil {
				return err
			}
			if active != nil && active.Number == number {
				c.Released(c.env, number) // by an attempt that was interrupted
				return nil
			}
			return c.ReleaseVersion(ctx, c.env, number)
		})
		var held *store.HeldError
		switch {
		case errors.As(err, &held):
			out(fmt.Sprintf("held: version %d is not released: %s\n%s\n",
				held.Version, held.Hold.Text, held.Advice()), "")
			return "", nil
		case fault.Is(err, fault.Conflict):
			out("Not released: "+err.Error()+"\n", "")
			return "", nil
		case err == nil:
			out(fmt.Sprintf("Version %d is active now\n", number), "")
		}
		return "", err
	})
}
