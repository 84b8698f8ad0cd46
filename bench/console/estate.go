package main

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/bench/peer"
)

//go:embed handler.py
var handler string

const (
	agents  = 20
	failing = 50
	chain   = 10 // resources in a row that require each other
)

// estate is the environment whose pages are measured.
type estate struct {
	options
	server *peer.Server
	repo   *peer.Repository
	env    string
	items  string // the folder that handlers write to
}

// fill makes the environment and its history.
func (e *estate) fill(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	step := func(what string) func() {
		began := time.Now()
		return func() { fmt.Printf("%s: %s\n", what, time.Since(began).Round(100*time.Millisecond)) }
	}
	done := step(fmt.Sprintf("%d resources pushed and deployed", e.resources))
	if e.repo, err = e.repository(ctx, "pages", e.resources); err != nil {
		return err
	}
	if e.env, err = e.server.Bind(ctx, e.repo.Bare, "main"); err != nil {
		return err
	}
	if err := e.server.WaitDeployedCount(ctx, e.env, e.resources); err != nil {
		return err
	}
	done()
	done = step(fmt.Sprintf("%d changed and deployed", e.changes))
	if err := e.change(ctx, e.changes); err != nil {
		return err
	}
	if err := e.settled(ctx, e.changes-1); err != nil {
		return err
	}
	done()
	done = step(fmt.Sprintf("%d drifted, found and repaired", e.drifted))
	if err := e.drift(ctx); err != nil {
		return err
	}
	done()
	done = step(fmt.Sprintf("a dry run of %d further changes", e.changes))
	if err := e.dryRun(ctx); err != nil {
		return err
	}
	done()
	return nil
}

func (e *estate) repository(ctx context.Context, name string, size int) (*peer.Repository, error) {
	dir := filepath.Join(e.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return peer.NewRepository(ctx, dir, peer.Model{
		Items: size, Agents: agents, Failing: failing, Chain: chain,
		Plugins: strings.ReplaceAll(handler, "@ITEMS@", e.items),
	})
}

// change pushes a commit that changes the first n resources.
func (e *estate) change(ctx context.Context, n int) error {
	some := make([]int, n)
	for i := range some {
		some[i] = i
	}
	if err := e.repo.ChangeSome(ctx, some, ""); err != nil {
		return err
	}
	return e.repo.Push(ctx)
}

// settled waits until a resource has its last value and all are deployed.
func (e *estate) settled(ctx context.Context, last int) error {
	id, value := e.repo.ID(last), e.repo.Value(last)
	if _, err := e.server.WaitDeployed(ctx, e.env, id, value, time.Time{}, 100*time.Millisecond); err != nil {
		return err
	}
	return e.server.WaitDeployedCount(ctx, e.env, e.resources)
}

// drift changes files behind the server's back and waits until a repair has found and mended them.
func (e *estate) drift(ctx context.Context) error {
	for i := range e.drifted {
		name := filepath.Join(e.items, fmt.Sprintf("item%d", i))
		if err := os.WriteFile(name, []byte("somebody else's"), 0o644); err != nil {
			return err
		}
	}
	if err := e.server.Call(ctx, http.MethodPost, "/api/v1/deploy", e.env,
		map[string]any{"agent_trigger_method": "push_full_deploy"}, nil); err != nil {
		return err
	}
	for i := e.drifted - 1; i >= 0; {
		text, err := os.ReadFile(filepath.Join(e.items, fmt.Sprintf("item%d", i)))
		switch {
		case err != nil:
			return err
		case string(text) == e.repo.Value(i):
			i--
		default:
			if err := peer.Wait(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return e.server.WaitDeployedCount(ctx, e.env, e.resources)
}

// dryRun compiles a further commit, which is not deployed, and tries it.
func (e *estate) dryRun(ctx context.Context) error {
	if err := e.server.Set(ctx, e.env, "auto_deploy", false); err != nil {
		return err
	}
	if err := e.change(ctx, e.changes); err != nil {
		return err
	}
	version, err := e.server.WaitVersion(ctx, e.env, 2)
	if err != nil {
		return err
	}
	var id string
	path := fmt.Sprintf("/api/v2/dryrun/%d", version)
	if err := e.server.Call(ctx, http.MethodPost, path, e.env, nil, &id); err != nil {
		return err
	}
	for range 6000 {
		var runs []struct {
			Todo int `json:"todo"`
		}
		if err := e.server.Call(ctx, http.MethodGet, path, e.env, nil, &runs); err != nil {
			return err
		}
		if len(runs) > 0 && runs[0].Todo == 0 {
			return nil
		}
		if err := peer.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return errNoDryRun
}
