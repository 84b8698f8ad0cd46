package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// numberHeader tells the desk which provisioner asks.
const numberHeader = "X-Bench-Provisioner"

// measure runs 2,000 machines' worth of tasks, and tells how quickly they were done.
func measure(ctx context.Context, o options) error {
	in, err := install(ctx, o, 30*time.Second)
	if err != nil {
		return err
	}
	defer in.close()
	c, err := newCrew(in, o, "")
	if err != nil {
		return err
	}
	defer c.killAll()
	began := time.Now()
	for _, e := range in.envs {
		if err := in.want(e, o.clusters, o.nodes); err != nil {
			return err
		}
	}
	fmt.Printf(
		"%d clusters of %d nodes planned in %s\n",
		o.projects*o.clusters,
		o.nodes,
		time.Since(began).Round(time.Millisecond),
	)
	if err := in.awaitJobs(ctx, o); err != nil {
		return err
	}
	total, err := in.done(ctx)
	if err != nil {
		return err
	}
	for n := range o.provisioners {
		if err := c.start(n); err != nil {
			return err
		}
	}
	began = time.Now()
	half, peak := []int(nil), 0
	var all int
	for _, t := range total {
		all += t.total
	}
	for {
		now, err := in.done(ctx)
		if err != nil {
			return err
		}
		sum := 0
		for _, p := range now {
			sum += p.done
		}
		peak = max(peak, residentMiB())
		if half == nil && sum >= all/2 {
			for _, p := range now {
				half = append(half, p.done)
			}
		}
		if sum == all {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
	took := time.Since(began)
	fmt.Printf("%d tasks in %s: %.0f tasks/s over %d provisioners\n", all, took.Round(time.Millisecond),
		float64(all)/took.Seconds(), o.provisioners)
	fmt.Printf("memory of the server: %d MiB at most\n", peak)
	fmt.Printf("tasks of each project when half of all were done: %v\n", half)
	return in.await(ctx, intent.ClusterActive, time.Minute)
}

// progress is how far the jobs of a project are.
type progress struct{ done, total int }

// done returns how far the projects are.
func (in *installation) done(ctx context.Context) ([]progress, error) {
	out := make([]progress, len(in.envs))
	for i, e := range in.envs {
		all, err := in.store.Clusters(ctx, e.ID, false)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			jobs, err := in.store.ClusterJobs(ctx, c.ID, 1)
			if err != nil {
				return nil, err
			}
			for _, j := range jobs {
				out[i].done, out[i].total = out[i].done+j.Done, out[i].total+j.Total
			}
		}
	}
	return out, nil
}

// awaitJobs waits until every cluster has a job.
func (in *installation) awaitJobs(ctx context.Context, o options) error {
	for {
		all, err := in.store.AllClusters(ctx)
		if err != nil {
			return err
		}
		have := 0
		for _, c := range all {
			jobs, err := in.store.ClusterJobs(ctx, c.ID, 1)
			if err != nil {
				return err
			}
			have += len(jobs)
		}
		if have == o.projects*o.clusters {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// residentMiB is how much memory this process uses.
func residentMiB() int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmRSS:"); is {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0]) // written by the kernel
			return kib >> 10
		}
	}
	return 0
}

// newCrew makes the provisioners of an installation, and starts none.
func newCrew(in *installation, o options, registry string) (*crew, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &crew{
		program: program, arguments: []string{"-room", strconv.Itoa(o.room)}, dir: in.dir, registry: registry,
		desk: "http://" + in.listener.Addr().String(),
	}, nil
}
