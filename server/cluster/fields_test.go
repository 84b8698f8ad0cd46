package cluster_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/task"
)

func token(value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"token": json.RawMessage(`"` + value + `"`)}
}

// A secret of an amendment counts once the amendment is committed, and not if somebody else was first.
func TestTheSecretOfAnAmendmentThatFails(t *testing.T) {
	l := openClouds(t)
	repository := l.reopen(time.Now)
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 1, Provider: "mine", Fields: token("first")})
	repository.commit = func(cluster.Change) (cluster.Written, error) {
		return cluster.Written{}, fault.New("test", fault.Conflict, "somebody was first")
	}
	if _, _, err := l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Fields: token("second")}); !fault.Is(
		err, fault.Conflict) {
		t.Fatalf("the error is %v", err)
	}
	tasks := l.take(1)
	if got := string(tasks[0].Provider.Fields["token"]); got != `"first"` {
		t.Errorf("the task gets the token %s", got)
	}
	repository.commit = nil
	l.finish(tasks[0], task.Result{Status: task.Done})
	l.amend("shop", cluster.Amendment{Fields: token("third")})
	if got := string(l.take(1)[0].Provider.Fields["token"]); got != `"third"` {
		t.Errorf("after the amendment the task gets the token %s", got)
	}
	if file := l.git(l.repo, "grep", "-h", "", "--", "clusters"); strings.Contains(file, "third") {
		t.Errorf("Git has the secret:\n%s", file)
	}
}

// Two people make a cluster with one name at the same time. It has the secrets of the one whose commit came first.
func TestSecretsOfTwoNamesakes(t *testing.T) {
	l := openClouds(t)
	repository := l.reopen(time.Now)
	wish := func(secret string) cluster.Wish {
		return cluster.Wish{
			Name: "shop", Template: "lamp", Size: 1, Provider: "mine", Fields: token(secret), Description: secret,
		}
	}
	repository.commit = func(c cluster.Change) (cluster.Written, error) {
		repository.commit = nil
		if _, _, err := l.Clusters.Create(l.ctx, l.e, wish("winner")); err != nil {
			t.Error(err)
		}
		return repository.Repository.Commit(l.ctx, l.e, c)
	}
	if _, _, err := l.Clusters.Create(l.ctx, l.e, wish("loser")); !fault.Is(err, fault.Conflict) {
		t.Fatalf("the error is %v", err)
	}
	l.deploy()
	if got := string(l.take(1)[0].Provider.Fields["token"]); got != `"winner"` {
		t.Errorf("the task gets the token %s", got)
	}
}

// The secrets of a cluster go with it, unless its file came back before it was gone: then they are its namesake's.
func TestSecretsGoWithTheirCluster(t *testing.T) {
	l := openClouds(t)
	secrets := func() int {
		kept, err := l.Store.ClusterSecrets(l.ctx, l.e.ID, "shop")
		must(t, err)
		return len(kept)
	}
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 1, Provider: "mine", Fields: token("first")})
	l.work()
	l.end("shop")
	if deleting := l.take(1); len(deleting) != 1 || deleting[0].Action != task.Delete {
		t.Fatalf("the tasks are %+v", deleting)
	} else {
		l.git(l.repo, "revert", "--no-edit", "HEAD") // somebody changed their mind too late
		l.release()
		l.finish(deleting[0], task.Result{Status: task.Done})
		delete(l.machines, deleting[0].Tag)
	}
	if l.work(); secrets() != 1 {
		t.Error("the secrets of the namesake went with the first cluster")
	}
	l.work()
	if c := l.named("shop"); c.State != intent.ClusterActive || len(l.machines) != 1 {
		t.Errorf("the namesake is %s (%s) with %d machines", c.State, c.Problem, len(l.machines))
	}
	l.end("shop")
	if l.work(); secrets() != 0 || len(l.machines) != 0 {
		t.Errorf("the cluster is gone, and %d secrets stay with %d machines", secrets(), len(l.machines))
	}
}

// Numbers that no float64 has are the same in the file, after an amendment, and in the task.
func TestLargeNumbers(t *testing.T) {
	l := openClouds(t)
	const large = "9007199254740993" // 2^53 + 1
	wish := cluster.Wish{
		Name: "shop", Template: "lamp", Size: 1, Provider: "mine", Fields: token("x"),
		Config: map[string]any{"id": json.Number(large), "ids": []any{map[string]any{"id": json.Number(large)}}},
	}
	wish.Fields["serial"] = json.RawMessage(large)
	l.create(wish)
	check := func(when string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(l.repo, "clusters/shop.yaml"))
		must(t, err)
		if n := strings.Count(string(text), large); n != 3 || strings.Contains(string(text), `"`+large) {
			t.Errorf("%s the file has the number %d times:\n%s", when, n, text)
		}
		tasks := 0
		l.fail = func(did task.Task) string {
			if did.Action == task.Install || did.Action == task.Configure {
				tasks++
				if n := strings.Count(string(did.Config), ":"+large); n != 2 {
					t.Errorf("%s %s has the configuration %s", when, did.Action, did.Config)
				}
			}
			if serial := string(did.Provider.Fields["serial"]); serial != large {
				t.Errorf("%s the provider gets the serial %s", when, serial)
			}
			return ""
		}
		l.work()
		if tasks == 0 {
			t.Errorf("%s nothing was configured, so this shows nothing", when)
		}
	}
	check("at first")
	l.amend("shop", cluster.Amendment{Restart: []string{"db"}})
	check("after an amendment")
}
