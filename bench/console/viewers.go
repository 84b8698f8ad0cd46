package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// measureViewers lets viewers look at the live overview while a change of all resources is deployed. It returns how
// many bars were missed.
func (e *estate) measureViewers(ctx context.Context) (missed int, err error) {
	if err := e.server.Set(ctx, e.env, "auto_deploy", true); err != nil {
		return 0, err
	}
	before, _, err := e.server.Memory()
	if err != nil {
		return 0, err
	}
	watching, leave := context.WithCancel(ctx)
	defer leave()
	b := newBrowser(e.server.URL())
	b.client.Timeout = 0
	var all sync.WaitGroup
	var bytes, refused atomic.Int64
	for range e.viewers {
		all.Go(func() {
			if err := watch(watching, b, "/e/"+e.env+"?live", &bytes); err != nil && watching.Err() == nil {
				refused.Add(1)
			}
		})
	}
	began := time.Now()
	if err := e.change(ctx, e.resources); err != nil {
		return 0, err
	}
	pages := newBrowser(e.server.URL())
	var took []time.Duration
	most := before
	deployed := make(chan error, 1)
	go func() { deployed <- e.settled(ctx, e.resources-1) }()
	for waiting := true; waiting; {
		select {
		case err = <-deployed:
			waiting = false
		case <-time.After(200 * time.Millisecond):
			v, err := pages.get(ctx, "/e/"+e.env, "zstd")
			if err != nil {
				return 0, err
			}
			took = append(took, v.firstByte)
			if now, _, err := e.server.Memory(); err == nil {
				most = max(most, now)
			}
		}
	}
	while := time.Since(began)
	leave()
	all.Wait()
	if err != nil {
		return 0, err
	}
	each := float64(bytes.Load()) / while.Seconds() / float64(e.viewers)
	fmt.Printf("%d viewers of the overview while %d resources were deployed in %s:\n", e.viewers, e.resources,
		while.Round(100*time.Millisecond))
	fmt.Printf("  %.1f kB/s for each%s\n", each/1024, verdict(each <= barViewer, &missed))
	fmt.Printf("  %d of them were refused or cut off%s\n", refused.Load(), verdict(refused.Load() == 0, &missed))
	p95 := percentile(took, 95)
	fmt.Printf("  the overview for one more: p50 %s ms, p95 %s ms of %d%s\n", ms(percentile(took, 50)), ms(p95),
		len(took), verdict(p95 <= barFirstByte, &missed))
	fmt.Printf("  memory of the server: %d MiB before, %d MiB at most\n", before>>20, most>>20)
	return missed, nil
}

// watch reads a live page until ctx ends, and counts its bytes.
func watch(ctx context.Context, b *browser, address string, bytes *atomic.Int64) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Accept-Encoding", "zstd, gzip")
	answer, err := b.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("a live page answers %s", answer.Status)
	}
	_, err = io.Copy(counter{bytes}, answer.Body)
	return err
}

type counter struct{ bytes *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}
