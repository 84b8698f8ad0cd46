package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"ordain.dev/ordain/server/cluster/provisioner/client"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/worker"
	"ordain.dev/ordain/server/cluster/task"
)

// Variables of a provisioner's process.
const (
	deskVariable     = "BENCH_DESK"     // address of the desk
	numberVariable   = "BENCH_NUMBER"   // of the provisioner
	registryVariable = "BENCH_REGISTRY" // address of the registry; empty: machines are nothing
	folderVariable   = "BENCH_FOLDER"
)

// provision is a provisioner: a process of its own.
func provision(ctx context.Context, o options) error {
	quiet := slog.New(slog.DiscardHandler)
	desk, err := client.New(client.Config{
		Base: os.Getenv(deskVariable), HTTP: &http.Client{Transport: numbered(os.Getenv(numberVariable))},
	})
	if err != nil {
		return err
	}
	p := &machines{registry: os.Getenv(registryVariable)}
	w, err := worker.New(worker.Config{
		Client: desk, Folder: os.Getenv(folderVariable), Room: o.room, Logger: quiet,
		Plugins: worker.Plugins{
			Providers:  map[string]plugin.Provider{"cloud": p},
			Automators: map[string]plugin.Automator{"nothing": p},
		},
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// numbered says in every request which provisioner asks.
type numbered string

func (n numbered) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(numberHeader, string(n))
	return http.DefaultTransport.RoundTrip(r)
}

// machines is a provider and an automator without any effect but on the registry.
type machines struct{ registry string }

func (m *machines) Create(ctx context.Context, c plugin.Call) (r plugin.Result, err error) {
	if m.registry == "" {
		return r, nil
	}
	ids, err := m.call(ctx, http.MethodGet, c.Tag)
	if err == nil && len(ids) == 0 {
		ids, err = m.call(ctx, http.MethodPost, c.Tag)
	}
	if err != nil {
		return r, err
	}
	r.Facts = task.Fields{"providerid": json.RawMessage(fmt.Sprintf("%q", ids[0]))}
	return r, nil
}

func (m *machines) Confirm(_ context.Context, c plugin.Call) (r plugin.Result, err error) {
	if m.registry != "" && len(c.Node.Facts["providerid"]) == 0 {
		return r, errors.New("the machine has no id")
	}
	ip := fmt.Sprintf("10.0.%d.%d", c.Node.Number/250%250, c.Node.Number%250)
	return plugin.Result{Addresses: map[string]string{"bind_v4": ip, "access_v4": ip}}, nil
}

func (m *machines) Delete(ctx context.Context, c plugin.Call) (r plugin.Result, err error) {
	if m.registry != "" {
		_, err = m.call(ctx, http.MethodDelete, c.Tag)
	}
	return r, err
}

func (m *machines) Bootstrap(context.Context, plugin.Call) (r plugin.Result, err error) {
	return r, nil
}
func (m *machines) Run(context.Context, plugin.Call) (r plugin.Result, err error) { return r, nil }

// call asks the registry, and returns the ids of the machines with a tag.
func (m *machines) call(ctx context.Context, method, tag string) (ids []string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, m.registry+"/"+url.PathEscape(tag), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New("the registry answers " + answer.Status)
	}
	return ids, json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&ids)
}

// crew are provisioners as processes of this program.
type crew struct {
	program   string
	arguments []string
	desk      string
	registry  string
	dir       string

	mu      sync.Mutex
	running []*exec.Cmd
}

// start starts the nth provisioner.
func (c *crew) start(n int) error {
	cmd := exec.Command(c.program, c.arguments...)
	folder := fmt.Sprintf("%s/provisioner-%d", c.dir, n)
	cmd.Env = append(os.Environ(), deskVariable+"="+c.desk, numberVariable+"="+strconv.Itoa(n),
		registryVariable+"="+c.registry, folderVariable+"="+folder)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.running) <= n {
		c.running = append(c.running, nil)
	}
	c.running[n] = cmd
	return nil
}

// kill kills the nth provisioner, and waits for its end.
func (c *crew) kill(n int) {
	c.mu.Lock()
	cmd := c.running[n]
	c.running[n] = nil
	c.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}
}

func (c *crew) killAll() {
	for n := range c.running {
		c.kill(n)
	}
}
