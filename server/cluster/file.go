package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/manifest"
)

// File is the file of a cluster at the tip of its branch.
type File struct {
	Manifest *manifest.Manifest
	Text     []byte
	Commit   string // the tip
	Digest   string // of the text: other texts have others
}

// File reads the file of a cluster as it is in Git now. It may be ahead of what is released, or behind the record, when
// somebody has deleted it.
func (s *Service) File(ctx context.Context, e intent.Environment, name string) (File, error) {
	f, _, err := s.current(ctx, e, name)
	return f, err
}

// current reads the file of a cluster at the tip of its branch, and what is recorded of the cluster.
func (s *Service) current(
	ctx context.Context, e intent.Environment, name string,
) (f File, c intent.Cluster, err error) {
	const op = "cluster.current"
	if err := manifest.CheckName(name); err != nil {
		return f, c, fault.Wrap(op, fault.Invalid, err)
	}
	f.Commit, f.Text, err = s.c.Repository.Tip(ctx, e, manifest.PathOf(name))
	if err != nil {
		return f, c, err
	}
	c, err = s.c.Store.Cluster(ctx, e.ID, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return f, c, err
	}
	if f.Text == nil {
		if err == nil {
			return f, c, fault.New(op, fault.Conflict, "the file "+manifest.PathOf(name)+" is not on the branch any "+
				"more")
		}
		return f, c, fault.New(op, fault.NotFound, "there is no cluster "+name)
	}
	if f.Manifest, err = manifest.Read(name, f.Text); err != nil {
		return f, c, fault.Wrap(op, fault.Conflict, err).Say(manifest.PathOf(name) + " cannot be read").
			Hint("mend the file first")
	}
	sum := sha256.Sum256(f.Text)
	f.Digest = hex.EncodeToString(sum[:16])
	return f, c, nil
}
