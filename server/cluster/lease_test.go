package cluster_test

import (
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster"
)

// The lease of one cluster is over, and its repository cannot be asked. The other clusters of the environment change
// all the same, and the error is seen at the cluster that it is about.
func TestALeaseThatCannotEnd(t *testing.T) {
	l := open(t)
	now := time.Now()
	repository := l.reopen(func() time.Time { return now })
	l.create(cluster.Wish{Name: "ending", Template: "lamp", Size: 1, Lease: time.Hour})
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 1})
	l.work()
	_, _, err := l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Restart: []string{"db"}})
	must(t, err)
	now = now.Add(2 * time.Hour)
	repository.tip = func(path string) error {
		if strings.Contains(path, "ending") {
			return fault.New("test", fault.Unavailable, "the forge does not answer")
		}
		return nil
	}
	l.deploy()
	if did := l.work(); len(did) == 0 {
		t.Error("the other cluster waits for the repository")
	}
	if c := l.named("ending"); !strings.Contains(c.Problem, "the forge does not answer") {
		t.Errorf("the problem is %q", c.Problem)
	}
	if c := l.named("shop"); c.Problem != "" {
		t.Errorf("the problem of the other cluster is %q", c.Problem)
	}

	repository.tip = nil
	l.work()
	l.deploy()
	if l.work(); len(l.machines) != 1 {
		t.Errorf("the repository answers again, and there are %d machines, want that of the other cluster",
			len(l.machines))
	}
}

// The end of a cluster is a pull request, which waits for somebody. It is asked for once, and again some hours later.
func TestTheEndIsAskedForOnce(t *testing.T) {
	l := open(t)
	now := time.Now()
	repository := l.reopen(func() time.Time { return now })
	l.create(cluster.Wish{Name: "ending", Template: "lamp", Size: 1, Lease: time.Hour})
	l.work()
	asked := 0
	repository.commit = func(c cluster.Change) (cluster.Written, error) {
		if asked++; c.Content != nil || c.Title != "Delete the cluster ending" {
			t.Errorf("the commit is %q", c.Title)
		}
		return cluster.Written{PullRequest: "https://forge.example/1"}, nil
	}
	for _, hours := range []time.Duration{2, 1, 1, 1} {
		now = now.Add(hours * time.Hour)
		l.work()
		l.work()
	}
	if asked != 1 {
		t.Errorf("within three hours the end was asked for %d times", asked)
	}
	now = now.Add(4 * time.Hour)
	if l.work(); asked != 2 {
		t.Errorf("after seven hours the end was asked for %d times", asked)
	}
	if len(l.machines) != 1 {
		t.Errorf("nobody merged it, and there are %d machines", len(l.machines))
	}
}
