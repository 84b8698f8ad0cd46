package control

import (
	"context"
	"encoding/json"
	"path"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/source"
)

// blameTime is how long one explanation may search Git history. It leaves out what
// it has not found by then.
const blameTime = 5 * time.Second

// maxBlames is how many blamed files are cached.
const maxBlames = 200

// blames caches the authors of lines of files at commits, which never change.
type blames struct {
	mu    sync.Mutex
	known map[blameKey]provenance.Blame
}

// A project does not see what another one has found out.
type blameKey struct {
	project           intent.ProjectID
	url, commit, path string
}

// Explain reports where the attributes of a resource were set, and in which commits.
// It returns NotFound if the version has no such resource or no provenance of it.
func (c *Control) Explain(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	id intent.ResourceID,
) (provenance.Explanation, error) {
	const op = "control.Explain"
	out := provenance.Explanation{Subject: id.String(), Version: number}
	resource, err := c.cfg.Store.VersionResource(ctx, env, number, id)
	if err != nil {
		return out, err
	}
	fields, commit, err := c.origins(ctx, env, number, id)
	if err != nil {
		return out, err
	}
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return out, err
	}
	out.Commit = commit
	c.blame(ctx, e, out.Commit, fields)
	var values map[string]json.RawMessage
	if err := json.Unmarshal(resource.Attributes, &values); err != nil {
		return out, fault.Wrap(op, fault.Internal, err)
	}
	out.Attributes = provenance.WithValues(fields, values)
	return out, nil
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

// blame adds the commits of the lines of those files that the repository has.
func (c *Control) blame(ctx context.Context, e intent.Environment, commit string, fields []provenance.Field) {
	ctx, cancel := context.WithTimeout(ctx, blameTime)
	defer cancel()
	src := source.Plain(e)
	provenance.Attach(fields, func(file string) provenance.Blame {
		inside := path.Join(e.Source.Subdir, file)
		if path.IsAbs(file) || commit == "" || ctx.Err() != nil {
			return nil
		}
		key := blameKey{e.ProjectID, e.Source.URL, commit, inside}
		if known, ok := c.blames.get(key); ok {
			return known
		}
		lines, err := c.cfg.Git.Blame(ctx, src, commit, inside)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil // too slow, or unreadable at present: the next explanation tries again
		}
		c.blames.put(key, lines)
		return lines
	})
}

func (b *blames) get(k blameKey) (provenance.Blame, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, ok := b.known[k]
	return lines, ok
}

func (b *blames) put(k blameKey, lines provenance.Blame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= maxBlames {
		b.known = map[blameKey]provenance.Blame{}
	}
	b.known[k] = lines
}
