package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// measurePages times every kind of page, and returns how many miss a bar.
func measurePages(ctx context.Context, o options, base string) (missed int, err error) {
	b := newBrowser(base)
	kinds, err := crawl(ctx, b)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%d kinds of pages, found by following links from the first page; first byte in ms\n", len(kinds))
	fmt.Printf("%9s %7s %7s %7s %8s  %s\n", "addresses", "first", "p50", "p95", "wire", "page")
	var rows []row
	for _, k := range kinds {
		if !o.wants(k.name) {
			continue
		}
		var took []time.Duration
		wire := 0
		for n := range o.requests {
			v, err := b.get(ctx, k.addresses[n%len(k.addresses)], "zstd, gzip")
			if err != nil {
				return missed, err
			}
			took, wire = append(took, v.firstByte), max(wire, v.wire)
		}
		p95 := percentile(took, 95)
		fits := p95 <= barFirstByte && (wire <= barWire || isDownload(k.name))
		rows = append(rows, row{max(p95, k.first), fits, fmt.Sprintf("%9d %7s %7s %7s %7.1fk  %s%s", len(k.addresses),
			ms(k.first), ms(percentile(took, 50)), ms(p95), float64(wire)/1024, k.name, verdict(fits, &missed))})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.slow, a.slow) })
	for i, r := range rows {
		if o.all || i < printed || !r.fits {
			fmt.Println(r.text)
		}
	}
	return missed, ctx.Err()
}

// row is a line of the table. Of those that fit, only so many are printed.
type row struct {
	slow time.Duration
	fits bool
	text string
}

const printed = 30

// isDownload reports whether an address is a file to keep, which may be large.
func isDownload(name string) bool { return strings.Contains(name, "/export") }

func (o options) wants(name string) bool {
	if o.only == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(o.only, ","), func(text string) bool {
		return strings.Contains(name, text)
	})
}

// percentile returns the value that so many percent do not exceed. It sorts.
func percentile(took []time.Duration, percent int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[min(len(took)-1, len(took)*percent/100)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
