package store_test

import (
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// BenchmarkResourceWaits says for what a page of resources waits, in an environment of 50,000: at best, where each has
// one requirement that is not deployed, and at worst, where each has 1,000 and all of them are deployed.
//
//	go test ./server/store -run '^$' -bench ResourceWaits -benchtime 30x
func BenchmarkResourceWaits(b *testing.B) {
	const size, page = 50_000, 50
	s, ctx := storetest.Open(b), b.Context()
	env, rs := newEnvironment(b, s), resources(size)
	for i := range page {
		last := &rs[size-1-i]
		last.Requires = nil
		for j := range 1000 {
			last.Requires = append(last.Requires, rs[j].ID)
		}
	}
	number := release(b, s, env, rs)
	known := states(b, s, env)
	var done []intent.FinishedAction
	for _, r := range rs[:1000] {
		done = append(done, deployed(known[r.ID], number, 5))
	}
	must(b, s.FinishActions(ctx, env, done))
	for name, from := range map[string]int{"one": size / 2, "thousand": size - page} {
		var ids []intent.ResourceID
		for _, r := range rs[from : from+page] {
			ids = append(ids, r.ID)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if found := get(s.ResourceWaits(ctx, env, ids))(b); len(found) != page {
					b.Fatal(len(found))
				}
			}
		})
	}
}
