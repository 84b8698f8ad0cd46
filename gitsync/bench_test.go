package gitsync

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// bigOrigin has 1,000 files in 50 folders, and some history.
func bigOrigin(b testing.TB) *origin {
	o := newOrigin(b)
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("d%d/f%d.cf", i%50, i)] = fmt.Sprintf("entity E%d: end\n", i)
	}
	o.push("all", files)
	for i := range 20 {
		o.push(fmt.Sprint(i), map[string]string{"d1/f1.cf": fmt.Sprint("h", i)})
	}
	return o
}

// A push of one changed file among 1,000 reaches the checkout: fetch and
// checkout, without the push itself.
func BenchmarkPushToCheckout(b *testing.B) {
	for _, way := range []string{"file", "http"} {
		b.Run(way, func(b *testing.B) {
			o, s, dir := bigOrigin(b), newSyncer(b), filepath.Join(b.TempDir(), "c")
			src := Source{URL: "file://" + o.bare, Branch: "main"}
			if way == "http" {
				src.URL = o.serve("").URL + "/origin.git"
			}
			rev, _ := fetch(b, s, src)
			checkout(b, s, src, rev.Commit, dir)
			n := 0
			var fetching, checking float64
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				n++
				want := o.push("x", map[string]string{"d7/f7.cf": fmt.Sprint("n", n)})
				b.StartTimer()
				begun := time.Now()
				rev, _ := fetch(b, s, src)
				fetched := time.Now()
				c := checkout(b, s, src, rev.Commit, dir)
				fetching += fetched.Sub(begun).Seconds() * 1000
				checking += time.Since(fetched).Seconds() * 1000
				if rev.Commit != want || c.Written != 1 {
					b.Fatalf("%+v %+v", rev, c)
				}
			}
			b.ReportMetric(fetching/float64(n), "fetch-ms")
			b.ReportMetric(checking/float64(n), "checkout-ms")
		})
	}
}

func BenchmarkFirstCheckout(b *testing.B) {
	o, s := bigOrigin(b), newSyncer(b)
	src := Source{URL: "file://" + o.bare, Branch: "main"}
	rev, _ := fetch(b, s, src)
	for b.Loop() {
		checkout(b, s, src, rev.Commit, filepath.Join(b.TempDir(), "c"))
	}
}

func BenchmarkTip(b *testing.B) {
	o, s := bigOrigin(b), newSyncer(b)
	src := Source{URL: "file://" + o.bare, Branch: "main"}
	for b.Loop() {
		if _, err := s.Tip(b.Context(), src); err != nil {
			b.Fatal(err)
		}
	}
}
