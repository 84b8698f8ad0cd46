package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/task"
)

// The repository takes no pushes. The person is told so, and nothing is left of what was asked for: no cluster, and no
// secret of one. A cluster that is there stays as it is.
func TestARepositoryThatIsNotWritable(t *testing.T) {
	l := openClouds(t)
	hook := filepath.Join(l.repo, ".git", "hooks", "pre-receive")
	must(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	closed := func() {
		must(t, os.WriteFile(hook, []byte("#!/bin/sh\necho this repository is read-only >&2\nexit 1\n"), 0o755))
	}
	l.create(cluster.Wish{Name: "blog", Template: "lamp", Size: 1})
	l.work()
	closed()
	_, _, err := l.Clusters.Create(l.ctx, l.e, cluster.Wish{
		Name: "shop", Template: "lamp", Size: 1, Provider: "mine", Fields: token("first"),
	})
	if err == nil || !strings.Contains(err.Error(), "this repository is read-only") {
		t.Fatalf("the error is %v", err)
	}
	if kept, err := l.Store.ClusterSecrets(l.ctx, l.e.ID, "shop"); err != nil || len(kept) != 0 {
		t.Errorf("%d secrets stay of a cluster that there is not: %v", len(kept), err)
	}
	if _, err := l.Clusters.Delete(l.ctx, l.e, "blog"); err == nil || l.named("blog").MayDelete {
		t.Errorf("the cluster may be deleted: %t, %v", l.named("blog").MayDelete, err)
	}
	three := 3
	if _, _, err := l.Clusters.Amend(l.ctx, l.e, "blog", cluster.Amendment{Size: &three}); err == nil {
		t.Error("a cluster was amended in a repository that takes no pushes")
	}
	l.deploy()
	if did := l.work(); len(did) != 0 || len(l.machines) != 1 || l.named("blog").State != intent.ClusterActive {
		t.Errorf("%v was done, and there are %d machines", did, len(l.machines))
	}

	must(t, os.Remove(hook))
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 1, Provider: "mine", Fields: token("second")})
	if l.work(); l.named("shop").State != intent.ClusterActive {
		t.Errorf("in a repository that takes pushes again: %s", l.named("shop").Problem)
	}
}

// The provider's quota is reached when one of two machines is made. The machine that there is stays known, the problem
// names the node and the reason, and deleting the cluster deletes it.
func TestAQuotaThatIsReachedHalfway(t *testing.T) {
	l := open(t)
	l.fail = func(t task.Task) string {
		if t.Action == task.Create && t.Node.Number == 1001 {
			return "the quota of the account is used up: 20 of 20 instances; ask for more, or delete some"
		}
		return ""
	}
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 2})
	l.work()
	c := l.named("shop")
	for _, word := range []string{"create on node 1001", "20 of 20 instances", "ask for more"} {
		if !strings.Contains(c.Problem, word) {
			t.Errorf("the problem does not say %q: %s", word, c.Problem)
		}
	}
	if c.State != intent.ClusterIncomplete || len(l.machines) != 1 {
		t.Errorf("the cluster is %s with %d machines", c.State, len(l.machines))
	}
	l.end("shop")
	l.work()
	if c := l.named("shop"); c.State != intent.ClusterTerminated || len(l.machines) != 0 {
		t.Errorf("the cluster is %s (%s) with %d machines", c.State, c.Problem, len(l.machines))
	}
}
