package cluster_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/servertest"
)

// openClouds is open with two providers more: cloud is an account of EC2, and mine asks its users for a secret.
func openClouds(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	files := catalogueFiles()
	maps.Copy(files, map[string][]byte{
		"providers/cloud.json": []byte(cloudIn("eu-west-1")),
		"providertypes/own.json": []byte(`{"name":"own","parameters":{"admin":{"fields":{}},"user":{"fields":{
			"token":{"type":"password"},"serial":{"type":"text"}},"required":[["token"]]}}}`),
		"providers/mine.json": []byte(`{"name":"mine","providertype":"own","provisioner":{}}`),
		"hardwaretypes/small.json": []byte(`{"name":"small","providermap":{"lab":{"flavor":"s"},
			"cloud":{"flavor":"t3.small"},"mine":{"flavor":"s"}}}`),
		"imagetypes/debian.json": []byte(`{"name":"debian","providermap":{"lab":{"image":"d","sshuser":"root"},
			"cloud":{"image":"ami-1","sshuser":"admin"},"mine":{"image":"d","sshuser":"root"}}}`),
	})
	return openProject(t, servertest.New(t, time.Now()), "shop", files)
}

// cloudIn is the provider cloud, in a region.
func cloudIn(region string) string {
	return strings.ReplaceAll(`{"name":"cloud","providertype":"aws","provisioner":{"api_user":"AKIA","api_password":"p",
		"aws_region":"REGION","ssh_keypair":"team","ssh_key_resource":"team","security_groups":"default"}}`,
		"REGION", region)
}

// create commits a new cluster and releases it.
func (l *lab) create(w cluster.Wish) {
	l.t.Helper()
	_, _, err := l.Clusters.Create(l.ctx, l.e, w)
	must(l.t, err)
	l.deploy()
}

// amend commits a change of a cluster and releases it.
func (l *lab) amend(name string, a cluster.Amendment) {
	l.t.Helper()
	_, _, err := l.Clusters.Amend(l.ctx, l.e, name, a)
	must(l.t, err)
	l.deploy()
}

// end commits the end of a cluster and releases it.
func (l *lab) end(name string) {
	l.t.Helper()
	_, err := l.Clusters.Delete(l.ctx, l.e, name)
	must(l.t, err)
	l.deploy()
}

// deploy releases what the branch has now.
func (l *lab) deploy() {
	l.t.Helper()
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
}

// take returns the tasks that are ready, room of them at most.
func (l *lab) take(room int) []task.Task {
	l.t.Helper()
	tasks, err := l.Desk.Take(l.ctx, l.provisioner(), room, 0)
	must(l.t, err)
	return tasks
}

// finish records how a task ended.
func (l *lab) finish(t task.Task, r task.Result) {
	l.t.Helper()
	r.ID, r.Fence = t.ID, t.Fence
	dropped, err := l.Desk.Finish(l.ctx, l.provisioner(), []task.Result{r})
	if err != nil || len(dropped) > 0 {
		l.t.Fatalf("the result was dropped: %v, %v", dropped, err)
	}
}

func (l *lab) provisioner() desk.Who { return desk.Who{Project: l.e.ProjectID, Name: "test"} }

// named returns the newest cluster with a name.
func (l *lab) named(name string) (found intent.Cluster) {
	l.t.Helper()
	all, err := l.Store.Clusters(l.ctx, l.e.ID, true)
	must(l.t, err)
	for _, c := range all {
		if c.Name == name {
			found = c
		}
	}
	if found.Name == "" {
		l.t.Fatal("there is no cluster ", name)
	}
	return found
}

// stubborn is a repository that fails when a test says so, or that has pull requests which nobody merges.
type stubborn struct {
	cluster.Repository
	tip    func(path string) error
	commit func(cluster.Change) (cluster.Written, error) // in place of a commit
}

func (s *stubborn) Tip(ctx context.Context, e intent.Environment, path string) (string, []byte, error) {
	if s.tip != nil {
		if err := s.tip(path); err != nil {
			return "", nil, err
		}
	}
	return s.Repository.Tip(ctx, e, path)
}

func (s *stubborn) Commit(ctx context.Context, e intent.Environment, c cluster.Change) (cluster.Written, error) {
	if s.commit != nil {
		return s.commit(c)
	}
	return s.Repository.Commit(ctx, e, c)
}

// reopen makes the cluster service anew, with a stubborn repository and a clock.
func (l *lab) reopen(now func() time.Time) *stubborn {
	l.t.Helper()
	r := &stubborn{Repository: l.Files}
	var err error
	l.Clusters, err = cluster.New(cluster.Config{
		Store: l.Store, Catalogues: l.Catalogue, Repository: r, Key: l.Key(), Bus: l.Bus, Logger: l.Log,
		Owns: func(intent.EnvironmentID) bool { return true }, Now: now,
	})
	must(l.t, err)
	return r
}
