package desk

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store"
)

// outputInterval is how often output is recorded while tasks run.
const outputInterval = time.Second

// outputs has what tasks printed since they were taken, the last of it, until they end.
type outputs struct {
	mu      sync.Mutex
	pending map[uuid.UUID]*printed
}

type printed struct {
	fence int64
	text  string
	dirty bool
	at    time.Time
}

// Output takes what a task printed.
func (d *Desk) Output(o task.Output) {
	d.output.mu.Lock()
	defer d.output.mu.Unlock()
	p := d.output.pending[o.ID]
	if p == nil || p.fence < o.Fence {
		p = &printed{fence: o.Fence}
		d.output.pending[o.ID] = p
	}
	if p.fence == o.Fence {
		p.text = tail(p.text + o.Text)
		p.dirty, p.at = true, time.Now()
	}
}

// tail returns the last of a text, from the beginning of a line if there is one.
func tail(text string) string {
	if len(text) <= task.MaxOutput {
		return text
	}
	text = text[len(text)-task.MaxOutput:]
	if i := strings.IndexByte(text, '\n'); i >= 0 && i < 4096 {
		text = text[i+1:]
	}
	return strings.ToValidUTF8(text, "")
}

// forget drops what ended tasks printed.
func (o *outputs) forget(ids []uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		delete(o.pending, id)
	}
}

// flush records what was printed since the last time.
func (d *Desk) flush(ctx context.Context) {
	d.output.mu.Lock()
	var all []store.ClusterOutput
	for id, p := range d.output.pending {
		if p.dirty {
			p.dirty = false
			all = append(
				all,
				store.ClusterOutput{ClusterLease: store.ClusterLease{ID: id, Fence: p.fence}, Text: p.text},
			)
		} else if time.Since(p.at) > 10*time.Minute { // its provisioner is gone
			delete(d.output.pending, id)
		}
	}
	d.output.mu.Unlock()
	if len(all) == 0 {
		return
	}
	if err := d.c.Store.SetClusterOutput(ctx, all); err != nil {
		d.c.Logger.Warn("cannot record what tasks print", "error", err)
		return
	}
	seen := map[uuid.UUID]bool{}
	for _, o := range all {
		if cluster := d.cache.clusterOf(o.ID); !seen[cluster] {
			seen[cluster] = true
			d.publish(ctx, cluster)
		}
	}
}
