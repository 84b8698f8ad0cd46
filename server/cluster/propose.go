package cluster

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/manifest"
)

// Current reads the file of a cluster as it is on the branch now, and all that it refers to.
func (s *Service) Current(ctx context.Context, e intent.Environment, name string) (*Definition, error) {
	f, err := s.File(ctx, e, name)
	if err != nil {
		return nil, err
	}
	return Define(ctx, s.c.Catalogues, e.ProjectID, f.Manifest)
}

// ProposeDeletion plans the end of a cluster. Nothing is written.
func (s *Service) ProposeDeletion(ctx context.Context, e intent.Environment, name string) (*Proposal, error) {
	c, err := s.c.Store.Cluster(ctx, e.ID, name)
	if err != nil {
		return nil, err
	}
	prior, err := decodeManifest(c.Wanted)
	if err != nil {
		return nil, err
	}
	p := &Proposal{Prior: prior}
	p.Plan, err = s.preview(ctx, e, c, nil, prior)
	return p, err
}

// ProposeRollBack plans the way back to the layout that the cluster had in full last. Nothing is written.
func (s *Service) ProposeRollBack(ctx context.Context, e intent.Environment, name string) (*Proposal, error) {
	p, _, err := s.proposeRollBack(ctx, e, name)
	return p, err
}

func (s *Service) proposeRollBack(
	ctx context.Context, e intent.Environment, name string,
) (p *Proposal, title string, err error) {
	const op = "cluster.RollBack"
	c, err := s.c.Store.Cluster(ctx, e.ID, name)
	if err != nil {
		return nil, "", err
	}
	applied, err := decodeManifest(c.Applied)
	if err != nil {
		return nil, "", err
	}
	if applied == nil {
		return nil, "", fault.New(op, fault.Conflict, "the cluster "+name+" has never been in place").
			Hint("delete it, or mend what failed and retry")
	}
	tip, content, err := s.c.Repository.Tip(ctx, e, manifest.PathOf(name))
	if err != nil {
		return nil, "", err
	}
	// Nodes made since then keep their numbers from being used again.
	prior, err := decodeManifest(c.Wanted)
	if err != nil {
		return nil, "", err
	}
	if prior != nil {
		applied.Next = max(applied.Next, prior.Next)
	}
	if err := s.renumberGone(ctx, c, applied); err != nil {
		return nil, "", err
	}
	p = &Proposal{Manifest: applied, Base: tip, Prior: prior}
	if p.File, err = manifest.Write(applied); err != nil {
		return nil, "", fault.Wrap(op, fault.Internal, err)
	}
	if string(content) == string(p.File) {
		return nil, "", fault.New(op, fault.Conflict, "the branch has this layout already")
	}
	if p.Plan, err = s.preview(ctx, e, c, applied, prior); err != nil {
		return nil, "", err
	}
	return p, "Roll the cluster " + name + " back to commit " + intent.Revision{Commit: c.AppliedAt}.Short(), nil
}
