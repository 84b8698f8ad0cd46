package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/cluster/manifest"
)

// Create commits the file of a new cluster.
func (s *Service) Create(ctx context.Context, e intent.Environment, w Wish) (*Proposal, Written, error) {
	p, err := s.Propose(ctx, e, w)
	if err != nil {
		return nil, Written{}, err
	}
	written, err := s.commit(ctx, e, w.Name, p, "Create the cluster "+w.Name)
	return p, written, err
}

// Amend commits a change of a cluster's file. Conflict: somebody changed it at the same time.
func (s *Service) Amend(
	ctx context.Context, e intent.Environment, name string, a Amendment,
) (*Proposal, Written, error) {
	p, err := s.ProposeAmendment(ctx, e, name, a)
	if err != nil {
		return nil, Written{}, err
	}
	written, err := s.commit(ctx, e, name, p, "Change the cluster "+name+": "+a.describe())
	return p, written, err
}

// describe says in a few words what an amendment does.
func (a Amendment) describe() string {
	var words []string
	say := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	if a.Size != nil {
		say(true, "%d nodes", *a.Size)
	}
	say(len(a.AddServices) > 0, "add %s", strings.Join(a.AddServices, ", "))
	say(len(a.RemoveServices) > 0, "remove %s", strings.Join(a.RemoveServices, ", "))
	say(len(a.Stop) > 0, "stop %s", strings.Join(a.Stop, ", "))
	say(len(a.Start) > 0, "start %s", strings.Join(a.Start, ", "))
	say(len(a.Restart) > 0, "restart %s", strings.Join(a.Restart, ", "))
	say(a.Config != nil, "other configuration")
	say(len(a.Fields) > 0, "other fields")
	say(a.Description != nil, "other description")
	say(a.Extend != 0 || a.Expires != nil, "other end of the lease")
	say(len(a.Replace) > 0, "replace %v", a.Replace)
	say(len(a.Remove) > 0, "remove %v", a.Remove)
	say(a.Sync, "newest versions of the catalogue")
	if len(words) == 0 {
		return "solve it again"
	}
	return strings.Join(words, ", ")
}

// commit writes a proposal.
func (s *Service) commit(
	ctx context.Context, e intent.Environment, name string, p *Proposal, title string,
) (Written, error) {
	// Secrets count once the change does. Those of a new cluster are there before its file is read, unless somebody
	// else is making a cluster with the same name: then theirs stay until this commit succeeds.
	first, err := s.sealFirst(ctx, e, name, p)
	if err != nil {
		return Written{}, err
	}
	written, err := s.c.Repository.Commit(ctx, e, Change{
		Path: manifest.PathOf(name), Content: p.File, Base: p.Base, Title: title, Body: p.Plan.String(),
	})
	if err != nil {
		if first {
			s.forgetSecrets(ctx, e, name)
		}
		return written, err
	}
	if err := s.c.Store.SetClusterSecrets(ctx, e.ID, name, p.sealed); err != nil {
		return written, err
	}
	audit.Subject(ctx, "the cluster "+name)
	audit.Change(ctx, nil, map[string]any{"file": manifest.PathOf(name), "commit": written.Commit, "title": title})
	return written, nil
}

// sealFirst keeps the secrets of a new cluster before its file is committed, if nobody has given any for the name.
func (s *Service) sealFirst(ctx context.Context, e intent.Environment, name string, p *Proposal) (bool, error) {
	if p.Prior != nil || len(p.sealed) == 0 {
		return false, nil
	}
	kept, err := s.c.Store.ClusterSecrets(ctx, e.ID, name)
	if err != nil || len(kept) > 0 {
		return false, err
	}
	return true, s.c.Store.SetClusterSecrets(ctx, e.ID, name, p.sealed)
}

// forgetSecrets forgets the secrets of a cluster whose file could not be committed, unless somebody else has committed
// one with the name meanwhile. It is done also for a caller who has gone.
func (s *Service) forgetSecrets(ctx context.Context, e intent.Environment, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, content, err := s.c.Repository.Tip(ctx, e, manifest.PathOf(name))
	if err == nil && content == nil {
		err = s.c.Store.ForgetClusterSecrets(ctx, e.ID, name)
	}
	if err != nil {
		s.c.Logger.Warn("the sealed fields of a cluster that was not committed stay; creating it again replaces them",
			"environment", e.Name, "cluster", name, "error", err)
	}
}

// Delete commits the end of a cluster: its file is deleted. The machines go when that is deployed.
func (s *Service) Delete(ctx context.Context, e intent.Environment, name string) (Written, error) {
	const op = "cluster.Delete"
	c, err := s.c.Store.Cluster(ctx, e.ID, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Written{}, err
	}
	known := err == nil
	tip, content, err := s.c.Repository.Tip(ctx, e, manifest.PathOf(name))
	if err != nil {
		return Written{}, err
	}
	if content == nil && !known {
		return Written{}, fault.New(op, fault.NotFound, "there is no cluster "+name)
	}
	if known {
		if err := s.c.Store.AllowClusterEnd(ctx, c.ID, true); err != nil {
			return Written{}, err
		}
		defer s.Wake(e.ID)
	}
	if content == nil { // the file is gone already; now its end is confirmed
		audit.Subject(ctx, "the cluster "+name)
		return Written{Commit: tip}, nil
	}
	written, err := s.c.Repository.Commit(ctx, e, Change{
		Path: manifest.PathOf(name), Base: tip, Title: "Delete the cluster " + name,
	})
	if err != nil && known {
		if undo := s.c.Store.AllowClusterEnd(ctx, c.ID, false); undo != nil {
			s.c.Logger.Error("a cluster stays marked as to be deleted", "cluster", name, "error", undo)
		}
		return written, err
	}
	audit.Subject(ctx, "the cluster "+name)
	audit.Change(ctx, map[string]any{"file": manifest.PathOf(name)}, map[string]any{"commit": written.Commit})
	return written, err
}

// RollBack commits the file that the cluster was made from in full last.
func (s *Service) RollBack(ctx context.Context, e intent.Environment, name string) (*Proposal, Written, error) {
	p, title, err := s.proposeRollBack(ctx, e, name)
	if err != nil {
		return nil, Written{}, err
	}
	written, err := s.commit(ctx, e, name, p, title)
	return p, written, err
}

// renumberGone gives nodes whose machines are gone new numbers.
func (s *Service) renumberGone(ctx context.Context, c intent.Cluster, m *manifest.Manifest) error {
	nodes, err := s.c.Store.ClusterNodes(ctx, true, c.ID)
	if err != nil {
		return err
	}
	gone := map[int]bool{}
	for _, n := range nodes {
		gone[n.Number] = n.State == intent.NodeGone
	}
	for i := range m.Nodes {
		if n := &m.Nodes[i]; gone[n.Number] {
			n.Number = m.Next
			n.Hostname = manifest.Hostname(m.Name, n.Number, suffixOf(n.Hostname))
			m.Next++
		}
	}
	return nil
}

func suffixOf(host string) string {
	_, suffix, _ := strings.Cut(host, ".")
	return suffix
}

// Pause stops handing out tasks of a cluster; what runs goes on to its end. Resume goes on.
func (s *Service) Pause(ctx context.Context, e intent.Environment, name string, paused bool) error {
	c, err := s.c.Store.Cluster(ctx, e.ID, name)
	if err != nil {
		return err
	}
	audit.Subject(ctx, "the cluster "+name)
	audit.Change(ctx, map[string]any{"paused": c.Paused}, map[string]any{"paused": paused})
	if err := s.c.Store.PauseCluster(ctx, c.ID, paused); err != nil {
		return err
	}
	s.publish(c)
	return nil
}

// Abort ends the job of a cluster: tasks that wait are dropped, and those that run are stopped. What there is stays,
// and is known.
func (s *Service) Abort(ctx context.Context, e intent.Environment, name string) error {
	c, err := s.c.Store.Cluster(ctx, e.ID, name)
	if err != nil {
		return err
	}
	jobs, err := s.c.Store.ClusterJobs(ctx, c.ID, 1)
	if err != nil {
		return err
	}
	if len(jobs) == 0 || jobs[0].State != intent.JobRunning {
		return fault.New("cluster.Abort", fault.Conflict, "nothing runs for the cluster "+name)
	}
	audit.Subject(ctx, "the cluster "+name)
	j := jobs[0]
	j.State, j.Problem = intent.JobAborted, "ended by "+access.Of(ctx).Name
	c.State, c.Problem = failedState(c, j), fmt.Sprintf("Job %d was ended by %s.", j.Number, access.Of(ctx).Name)
	if err := s.c.Store.AbortClusterJob(ctx, j, c); err != nil {
		return err
	}
	s.publish(c)
	s.changed(c, fmt.Sprintf("job %d of the cluster %s was ended", j.Number, c.Name))
	return nil
}

// Retry makes another job after one failed or was ended.
func (s *Service) Retry(ctx context.Context, e intent.Environment, name string) error {
	c, err := s.c.Store.Cluster(ctx, e.ID, name)
	if err != nil {
		return err
	}
	audit.Subject(ctx, "the cluster "+name)
	if err := s.c.Store.RetryCluster(ctx, c.ID); err != nil {
		return err
	}
	s.Wake(e.ID)
	s.publish(c)
	return nil
}
