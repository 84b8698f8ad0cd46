package cluster

import (
	"context"
	"fmt"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
)

// firstLease returns the end of a new lease; nil: it has none. A template's lease of zero has no end and no limit.
func firstLease(l catalogue.Lease, wanted time.Duration, now time.Time) (*time.Time, error) {
	initial := time.Duration(l.Initial)
	switch {
	case wanted < 0:
		return nil, invalid("the lease is in the past")
	case wanted == 0 && initial == 0:
		return nil, nil
	case wanted == 0:
		wanted = initial
	case initial != 0 && wanted > initial:
		return nil, invalid(
			"the lease is %s, and the template allows %s at first; it can be extended later",
			wanted,
			initial,
		)
	}
	end := now.Add(wanted).UTC().Truncate(time.Second)
	return &end, nil
}

// amendLease extends or sets the end of the lease.
func (s *Service) amendLease(d *Definition, a Amendment, c intent.Cluster) error {
	m := d.Manifest
	if a.Extend == 0 && a.Expires == nil {
		return nil
	}
	if m.Expires == nil {
		return invalid("the cluster has no lease that ends")
	}
	end := m.Expires.Add(a.Extend)
	if a.Expires != nil {
		end = *a.Expires
	}
	end = end.UTC().Truncate(time.Second)
	rules := d.Template.Administration.Lease
	step, most := time.Duration(rules.Step), time.Duration(rules.Max)
	made := c.Made
	if made.IsZero() {
		made = s.c.Now()
	}
	switch {
	case end.Before(s.c.Now()):
		return invalid("the lease would end on %s, which is in the past; to end the cluster, delete it", stamp(end))
	case step != 0 && end.Sub(*m.Expires) > step:
		return invalid("the lease may be extended by %s at a time, to %s", step, stamp(m.Expires.Add(step)))
	case most != 0 && end.After(made.Add(most)):
		return invalid(
			"the cluster may live until %s at most: the template allows %s in all",
			stamp(made.Add(most)),
			most,
		)
	}
	m.Expires = &end
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// endAgain is the time after which the end of a cluster is asked for again.
const endAgain = 6 * time.Hour

// noticeBefore is how long before its end a lease is announced.
const noticeBefore = 24 * time.Hour

// keepLease announces the end of a lease, and when it is over deletes the cluster: by a commit, as a person would. over
// says that nothing else is to be done to the cluster.
func (s *Service) keepLease(ctx context.Context, e intent.Environment, c intent.Cluster) (over bool, err error) {
	if c.Expires == nil || c.Wanted == nil {
		return false, nil
	}
	if s.c.Now().Before(*c.Expires) {
		return false, s.announceEnd(ctx, e, c)
	}
	if at, asked := s.ended.Load(c.ID); asked && s.c.Now().Before(at.(time.Time).Add(endAgain)) {
		return true, nil // a pull request may wait for somebody
	}
	tip, content, err := s.c.Repository.Tip(ctx, e, manifest.PathOf(c.Name))
	if err != nil || content == nil {
		return true, err // without a file, what is left is to release a version without it
	}
	m, err := manifest.Read(c.Name, content)
	if err == nil && (m.Expires == nil || s.c.Now().Before(*m.Expires)) {
		return false, nil // it was extended, and the version with that is on its way
	}
	if err := s.c.Store.AllowClusterEnd(ctx, c.ID, true); err != nil {
		return true, err
	}
	// Nobody has asked for it: the author is Ordain.
	written, err := s.c.Repository.Commit(access.With(ctx, access.Principal{}), e, Change{
		Path: manifest.PathOf(c.Name), Base: tip, Title: "Delete the cluster " + c.Name,
		Body: "Its lease ended on " + stamp(*c.Expires) + ".",
	})
	if err != nil {
		return true, fault.Wrap("cluster.keepLease", fault.KindOf(err), err).
			Say("the lease is over, and its file cannot be deleted")
	}
	s.ended.Store(c.ID, s.c.Now())
	s.c.Logger.Info("the lease of a cluster is over", "environment", e.Name, "cluster", c.Name,
		"commit", written.Commit)
	where := "Its file was deleted from Git"
	if written.PullRequest != "" {
		where = "A pull request deletes its file: " + written.PullRequest
	}
	return true, s.notify(ctx, e, intent.SeverityInfo, "The lease of the cluster "+c.Name+" is over",
		where+". Its machines are deleted when that is deployed.", c)
}

// announceEnd tells people once that a lease ends soon.
func (s *Service) announceEnd(ctx context.Context, e intent.Environment, c intent.Cluster) error {
	if c.Noticed != nil || s.c.Now().Add(noticeBefore).Before(*c.Expires) {
		return nil
	}
	if err := s.notify(ctx, e, intent.SeverityWarning, "The lease of the cluster "+c.Name+" ends",
		fmt.Sprintf("The cluster and its machines are deleted on %s. Extend its lease to keep it.", stamp(*c.Expires)),
		c); err != nil {
		return err
	}
	return s.c.Store.NoteClusterNoticed(ctx, c.ID)
}

// notify tells people about a cluster.
func (s *Service) notify(
	ctx context.Context, e intent.Environment, severity intent.Severity, title, message string, c intent.Cluster,
) error {
	err := s.c.Store.Notify(ctx, e.ID, intent.Notice{
		Severity: severity, Title: title, Message: message, URI: "/api/v2/cluster/clusters/" + c.Name,
	})
	if err == nil {
		s.c.Bus.Publish(bus.Event{Environment: e.ID, Topic: bus.Notification})
	}
	return err
}
