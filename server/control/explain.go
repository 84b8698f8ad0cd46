package control

import (
	"context"
	"encoding/json"
	"path"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/source"
)

// explainTime is how long a complete explanation may search Git history. It leaves out what
// it has not found by then.
const explainTime = 15 * time.Second

// Explain reports where the attributes of a resource were set, and in which commits.
// It returns NotFound if the version has no such resource or no provenance of it.
func (c *Control) Explain(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	id intent.ResourceID,
) (provenance.Explanation, error) {
	out, _, err := c.explain(ctx, env, number, id, explainTime, true)
	return out, err
}

// ExplainWithin is Explain for pages, which do not wait longer than that for Git. It also
// returns the files whose authors are still being looked up; when they are found, it
// publishes bus.Authors.
func (c *Control) ExplainWithin(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	id intent.ResourceID,
	wait time.Duration,
) (provenance.Explanation, map[string]bool, error) {
	return c.explain(ctx, env, number, id, wait, false)
}

func (c *Control) explain(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	id intent.ResourceID,
	wait time.Duration,
	patient bool,
) (out provenance.Explanation, pending map[string]bool, err error) {
	const op = "control.Explain"
	out = provenance.Explanation{Subject: id.String(), Version: number}
	resource, err := c.cfg.Store.VersionResource(ctx, env, number, id)
	if err != nil {
		return out, nil, err
	}
	fields, commit, err := c.origins(ctx, env, number, id)
	if err != nil {
		return out, nil, err
	}
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return out, nil, err
	}
	out.Commit = commit
	pending = c.blame(ctx, e, commit, fields, wait, patient)
	var values map[string]json.RawMessage
	if err := json.Unmarshal(resource.Attributes, &values); err != nil {
		return out, nil, fault.Wrap(op, fault.Internal, err)
	}
	out.Attributes = provenance.WithValues(fields, values)
	return out, pending, nil
}

// origins returns the provenance of a resource and the commit that it was compiled
// from. A version from a partial compile has the provenance of the resources of that
// compile; origins looks for the others in the version before it.
func (c *Control) origins(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	id intent.ResourceID,
) ([]provenance.Field, string, error) {
	const op = "control.Explain"
	for number > 0 {
		version, err := c.cfg.Store.Version(ctx, env, number)
		if err != nil {
			return nil, "", err
		}
		table, err := c.tables.get(ctx, c.cfg.Store, tableKey{env, number, version.Created})
		if err != nil {
			return nil, "", err
		}
		if table != nil {
			if fields, ok := table.Explain(id.String()); ok {
				return fields, version.Provenance.Commit, nil
			}
		}
		number = min(version.Provenance.PartialBase, number-1)
	}
	return nil, "", fault.New(op, fault.NotFound, "no version records where the values of "+id.String()+" were set").
		Hint("compile again: new versions record it")
}

// blame adds the commits of the lines of those files that the repository has. It returns
// the files whose lines are still being looked up when the time is over.
func (c *Control) blame(
	ctx context.Context, e intent.Environment, commit string, fields []provenance.Field,
	wait time.Duration, patient bool,
) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	src, pending := source.Plain(e), map[string]bool{}
	provenance.Attach(fields, func(file string) provenance.Blame {
		if path.IsAbs(file) || commit == "" {
			return nil
		}
		inside := path.Join(e.Source.Subdir, file)
		lines, later := c.authors.ask(ctx, question{
			key: blameKey{e.ProjectID, e.Source.URL, commit, inside}, env: e.ID, patient: patient,
			blame: func(ctx context.Context) (provenance.Blame, error) {
				return c.cfg.Git.Blame(ctx, src, commit, inside)
			},
			found: func(env intent.EnvironmentID) { c.publish(env, bus.Authors, commit) },
		})
		if later {
			pending[file] = true
		}
		return lines
	})
	return pending
}
