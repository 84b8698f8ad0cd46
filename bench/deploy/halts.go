package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/bench/peer"
)

// compareHalts pauses and halts an environment of each server, through the API
// that both answer, and prints what each server answers, and what it deploys when.
func (b *bench) compareHalts(ctx context.Context) error {
	var all [2][]observation
	for i, s := range b.Servers {
		t := &haltTest{server: s}
		if err := t.play(ctx, b.Folder(fmt.Sprint("repo", i))); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		all[i] = t.observed
	}
	fmt.Printf("| step | %s | %s | |\n| --- | --- | --- | --- |\n", b.Servers[0].Name, b.Servers[1].Name)
	for i, ours := range all[0] {
		mark := ""
		if ours.result != all[1][i].result {
			mark = "differs"
		}
		fmt.Printf("| %s | %s | %s | %s |\n", ours.step, ours.result, all[1][i].result, mark)
	}
	return nil
}

// observation is what a server answered or showed at one step.
type observation struct{ step, result string }

// haltTest plays the scenario on one server and writes down what it observes.
type haltTest struct {
	server   *peer.Server
	repo     *peer.Repository
	env      string
	observed []observation
}

const (
	// quietTime is how long nothing must happen before the scenario concludes that nothing will.
	quietTime = 6 * time.Second
	patience  = 3 * time.Minute
)

// play runs all steps, with four items that alternate between two agents, a0 and a1.
func (t *haltTest) play(ctx context.Context, dir string) error {
	var err error
	if t.repo, err = peer.NewRepository(ctx, dir, peer.Model{Items: 4, Agents: 2}); err != nil {
		return err
	}
	if t.env, err = t.server.Bind(ctx, t.repo.Bare, "main"); err != nil {
		return err
	}
	for name, value := range map[string]any{
		"auto_deploy": true, "autostart_agent_deploy_interval": "0", "autostart_agent_repair_interval": "0",
	} {
		if err := t.server.Set(ctx, t.env, name, value); err != nil {
			return err
		}
	}
	steps := []func(context.Context) error{t.first, t.pauseOne, t.halt, t.choose, t.resume, t.unpause}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *haltTest) first(ctx context.Context) error {
	if err := t.server.Trigger(ctx, t.env); err != nil {
		return err
	}
	if err := t.compiled(ctx, 0); err != nil {
		return err
	}
	return t.soon(ctx, "everything is deployed", "a0 2 deployed, a1 2 deployed")
}

// pauseOne checks that changes on a paused agent wait, and those on the other do not.
func (t *haltTest) pauseOne(ctx context.Context) error {
	t.ask(ctx, "pause a0", http.MethodPost, "/api/v2/agent/a0/pause")
	t.ask(ctx, "pause a0 again", http.MethodPost, "/api/v2/agent/a0/pause")
	t.ask(ctx, "an action that does not exist", http.MethodPost, "/api/v2/agent/a0/dance")
	t.ask(ctx, "pause an agent that does not exist", http.MethodPost, "/api/v2/agent/nobody/pause")
	t.agents(ctx, "agents")
	before, err := t.quiet(ctx)
	if err != nil {
		return err
	}
	if err := t.change(ctx, 0, 1); err != nil {
		return err
	}
	if err := t.compiled(ctx, before); err != nil {
		return err
	}
	const onePaused = "a0 1 available, a0 1 deployed, a1 2 deployed"
	if err := t.soon(ctx, "item0 on a0 and item1 on a1 change", onePaused); err != nil {
		return err
	}
	t.ask(ctx, "deploy by hand", http.MethodPost, "/api/v1/deploy")
	return t.still(ctx, "a while later")
}

// halt checks that nothing starts, and that a push waits.
func (t *haltTest) halt(ctx context.Context) error {
	t.ask(ctx, "halt", http.MethodPost, "/api/v2/actions/environment/halt")
	t.ask(ctx, "halt again", http.MethodPost, "/api/v2/actions/environment/halt")
	t.agents(ctx, "agents")
	t.ask(ctx, "pause a1 while halted", http.MethodPost, "/api/v2/agent/a1/pause")
	t.ask(ctx, "unpause a0 while halted", http.MethodPost, "/api/v2/agent/a0/unpause")
	if err := t.change(ctx, 3); err != nil {
		return err
	}
	if err := t.still(ctx, "item3 on a1 changes, a while later"); err != nil {
		return err
	}
	t.add("newest version", fmt.Sprint(t.newest(ctx)))
	return nil
}

// choose sets which agents stay paused after the halt.
func (t *haltTest) choose(ctx context.Context) error {
	t.ask(ctx, "keep a1 paused on resume", http.MethodPost, "/api/v2/agent/a1/keep_paused_on_resume")
	t.ask(ctx, "unpause a0 on resume", http.MethodPost, "/api/v2/agent/a0/unpause_on_resume")
	t.agents(ctx, "agents")
	return nil
}

func (t *haltTest) resume(ctx context.Context) error {
	t.ask(ctx, "resume", http.MethodPost, "/api/v2/actions/environment/resume")
	t.ask(ctx, "resume again", http.MethodPost, "/api/v2/actions/environment/resume")
	t.ask(ctx, "keep a1 paused on resume, without a halt", http.MethodPost, "/api/v2/agent/a1/keep_paused_on_resume")
	if err := t.soon(ctx, "a0 goes on, a1 does not", "a0 2 deployed, a1 1 available, a1 1 deployed"); err != nil {
		return err
	}
	t.agents(ctx, "agents")
	return nil
}

func (t *haltTest) unpause(ctx context.Context) error {
	t.ask(ctx, "unpause all", http.MethodPost, "/api/v2/agents/unpause")
	if err := t.soon(ctx, "everything is deployed", "a0 2 deployed, a1 2 deployed"); err != nil {
		return err
	}
	t.agents(ctx, "agents")
	return nil
}

// change pushes other values of some items and asks for a compile.
func (t *haltTest) change(ctx context.Context, items ...int) error {
	if err := t.repo.ChangeSome(ctx, items, ""); err != nil {
		return err
	}
	if err := t.repo.Push(ctx); err != nil {
		return err
	}
	err := t.server.Trigger(ctx, t.env)
	t.add("ask for a compile", outcome(err))
	return nil
}

// compiled waits for a version newer than above, however long it takes: only then
// can the next steps be compared.
func (t *haltTest) compiled(ctx context.Context, above int) error {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	_, err := t.server.WaitVersion(ctx, t.env, above)
	return err
}

// quiet waits until no compile runs or waits and returns the newest version, so
// that a newer one can only come from a later push: a server may compile a new
// environment twice.
func (t *haltTest) quiet(ctx context.Context) (newest int, err error) {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	type report struct {
		Completed *string `json:"completed"`
	}
	for {
		var rows []report
		if err := t.server.Call(ctx, http.MethodGet, "/api/v2/compilereport?limit=100", t.env, nil, &rows); err != nil {
			return 0, err
		}
		if !slices.ContainsFunc(rows, func(r report) bool { return r.Completed == nil }) {
			return t.newest(ctx), nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (t *haltTest) add(step, result string) {
	t.observed = append(t.observed, observation{step, result})
}

// ask sends a request and notes whether the server accepts it.
func (t *haltTest) ask(ctx context.Context, step, method, path string) {
	var body any
	if strings.HasSuffix(path, "/deploy") {
		body = map[string]any{"agent_trigger_method": "push_incremental_deploy"}
	}
	t.add(step, outcome(t.server.Call(ctx, method, path, t.env, body, nil)))
}

// soon waits until the items are in the wanted state, and notes their state.
func (t *haltTest) soon(ctx context.Context, step, want string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		is, err := t.items(ctx)
		if is == want || ctx.Err() != nil {
			t.add(step, is)
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// still notes the state of the items after the time in which something would have happened.
func (t *haltTest) still(ctx context.Context, step string) error {
	time.Sleep(quietTime)
	is, err := t.items(ctx)
	t.add(step, is)
	return err
}

// items counts the items by agent and status.
func (t *haltTest) items(ctx context.Context) (string, error) {
	var rows []struct {
		Status string `json:"status"`
		ID     struct {
			Agent string `json:"agent"`
		} `json:"id_details"`
	}
	if err := t.server.Call(ctx, http.MethodGet, "/api/v2/resource?limit=100", t.env, nil, &rows); err != nil {
		return "", err
	}
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.ID.Agent+" %d "+r.Status]++
	}
	var out []string
	for what, n := range counts {
		out = append(out, fmt.Sprintf(what, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", "), nil
}

func (t *haltTest) agents(ctx context.Context, step string) {
	var rows []struct {
		Name   string `json:"name"`
		Paused bool   `json:"paused"`
		Status string `json:"status"`
		After  *bool  `json:"unpause_on_resume"`
	}
	err := t.server.Call(ctx, http.MethodGet, "/api/v2/agents?limit=100", t.env, nil, &rows)
	var out []string
	for _, a := range rows {
		if strings.HasPrefix(a.Name, "$") {
			continue // the reference's scheduler
		}
		after := ""
		if a.After != nil {
			after = fmt.Sprintf(", to go on: %t", *a.After)
		}
		out = append(out, fmt.Sprintf("%s %s (paused: %t%s)", a.Name, a.Status, a.Paused, after))
	}
	slices.Sort(out)
	if err != nil {
		out = append(out, err.Error())
	}
	t.add(step, strings.Join(out, "; "))
}

func (t *haltTest) newest(ctx context.Context) int {
	var rows []struct {
		Version int `json:"version"`
	}
	if t.server.Call(ctx, http.MethodGet, "/api/v2/desiredstate?limit=1", t.env, nil, &rows) != nil || len(rows) == 0 {
		return 0
	}
	return rows[0].Version
}

// outcome describes how a server answered.
func outcome(err error) string {
	if err == nil {
		return "done"
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return "refused: " + first
}
