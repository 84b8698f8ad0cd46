package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// registry is a cloud: it makes a machine whenever it is asked, and a second one for the same tag as well. Only a
// request that is repeated within its memory of client tokens has the same answer, as in real clouds.
type registry struct {
	mu       sync.Mutex
	machines map[string][]string // ids by tag
	ever     map[string]int      // how many were made for a tag
	next     int
	rng      *rand.Rand
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	tag := q.URL.Path[1:]
	r.mu.Lock()
	wait := time.Duration(r.rng.IntN(50)) * time.Millisecond
	r.mu.Unlock()
	// Half of the time passes before anything happens, half after it: a caller may be killed in both.
	time.Sleep(wait)
	r.mu.Lock()
	switch q.Method {
	case http.MethodPost:
		// The tag is also the client token: a cloud makes one machine for it as long as that machine exists.
		if len(r.machines[tag]) == 0 {
			r.next++
			r.machines[tag] = append(r.machines[tag], fmt.Sprintf("i-%06d", r.next))
			r.ever[tag]++
		}
	case http.MethodDelete:
		delete(r.machines, tag)
	}
	ids := append([]string{}, r.machines[tag]...)
	r.mu.Unlock()
	time.Sleep(wait)
	_ = json.NewEncoder(w).Encode(ids) // the caller may have been killed
}

// runRounds makes and deletes clusters while provisioners are killed, and counts machines.
func runRounds(ctx context.Context, o options) error {
	o.nodes, o.clusters, o.provisioners, o.room = min(o.nodes, 10), 1, min(o.provisioners, 8), min(o.room, 10)
	fmt.Printf("seed %d\n", o.seed)
	rng := rand.New(rand.NewPCG(o.seed, 1))
	in, err := install(ctx, o, 2*time.Second)
	if err != nil {
		return err
	}
	defer in.close()
	cloud := &registry{machines: map[string][]string{}, ever: map[string]int{}, rng: rand.New(rand.NewPCG(o.seed, 2))}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() { _ = http.Serve(l, cloud) }() // until it is closed
	c, err := newCrew(in, o, "http://"+l.Addr().String())
	if err != nil {
		return err
	}
	defer c.killAll()
	for n := range o.provisioners {
		if err := c.start(n); err != nil {
			return err
		}
	}
	kills := 0
	for round := range o.rounds {
		began := time.Now()
		n, err := in.round(ctx, o, c, cloud, rng)
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		kills += n
		fmt.Printf("round %d: %d kills, %s\n", round+1, n, time.Since(began).Round(100*time.Millisecond))
	}
	fmt.Printf("%d rounds, %d kills, %d machines: none lost, none made twice\n", o.rounds, kills, cloud.next)
	return nil
}

// round makes a cluster in each project, checks the machines, deletes the clusters, and checks again. It returns how
// many provisioners were killed meanwhile.
func (in *installation) round(ctx context.Context, o options, c *crew, cloud *registry, rng *rand.Rand) (int, error) {
	all := 0
	for _, goal := range []struct {
		nodes int
		state intent.ClusterState
	}{{o.nodes, intent.ClusterActive}, {0, intent.ClusterTerminated}} {
		clusters := o.clusters
		if goal.nodes == 0 {
			clusters = 0
		}
		for _, e := range in.envs {
			if clusters == 0 {
				if err := in.allowEnds(ctx, e); err != nil {
					return all, err
				}
			}
			if err := in.want(e, clusters, goal.nodes); err != nil {
				return all, err
			}
		}
		kills, err := in.untilWithKills(ctx, goal.state, c, o, rng)
		if all += kills; err != nil {
			return all, err
		}
		if err := in.count(ctx, cloud, len(in.envs)*clusters*goal.nodes); err != nil {
			return all, err
		}
	}
	return all, nil
}

// allowEnds confirms that the clusters of an environment are to end, as the verb that deletes them does.
func (in *installation) allowEnds(ctx context.Context, e intent.Environment) error {
	all, err := in.store.Clusters(ctx, e.ID, false)
	for _, c := range all {
		if err == nil {
			err = in.store.AllowClusterEnd(ctx, c.ID, true)
		}
	}
	return err
}

// untilWithKills kills and starts provisioners until the clusters are in a state.
func (in *installation) untilWithKills(
	ctx context.Context, state intent.ClusterState, c *crew, o options, rng *rand.Rand,
) (kills int, err error) {
	reached := make(chan error, 1)
	go func() { reached <- in.await(ctx, state, 3*time.Minute) }()
	for {
		select {
		case err := <-reached:
			return kills, err
		case <-time.After(time.Duration(100+rng.IntN(900)) * time.Millisecond):
		}
		n := rng.IntN(o.provisioners)
		c.kill(n)
		kills++
		if err := c.start(n); err != nil {
			return kills, err
		}
	}
}

// count compares the machines of the cloud with those that the record knows.
func (in *installation) count(ctx context.Context, cloud *registry, want int) error {
	known := map[string]bool{}
	for _, e := range in.envs {
		all, err := in.store.Clusters(ctx, e.ID, false)
		if err != nil {
			return err
		}
		for _, c := range all {
			nodes, err := in.store.ClusterNodes(ctx, false, c.ID)
			if err != nil {
				return err
			}
			for _, n := range nodes {
				known[fmt.Sprintf("%s-%d", c.ID, n.Number)] = n.State == intent.NodeMade
			}
		}
	}
	cloud.mu.Lock()
	defer cloud.mu.Unlock()
	var wrong []error
	for tag, ids := range cloud.machines {
		if !known[tag] {
			wrong = append(wrong, fmt.Errorf("nobody knows of the machine %v with the tag %s", ids, tag))
		}
	}
	for tag, n := range cloud.ever {
		if n != 1 {
			wrong = append(wrong, fmt.Errorf("%d machines were made for %s", n, tag))
		}
	}
	if len(cloud.machines) != want {
		wrong = append(wrong, fmt.Errorf("there are %d machines, want %d", len(cloud.machines), want))
	}
	return errors.Join(wrong...)
}
