package store_test

import (
	"fmt"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// BenchmarkFilteredPage is what the page of resources asks at 50,000 resources of 500 agents and 40 types: a page of
// the list, and all counts.
func BenchmarkFilteredPage(b *testing.B) {
	const n = 50_000
	s, ctx := storetest.Open(b), b.Context()
	env, rs := newEnvironment(b, s), resources(n)
	for i := range rs {
		rs[i].Requires = nil
		rs[i].ID.Agent, rs[i].ID.Type = fmt.Sprintf("host%03d", i%500), fmt.Sprintf("fs::Type%02d", i%40)
	}
	release(b, s, env, rs)
	for name, f := range map[string]intent.ResourceFilter{
		"all":   {Status: intent.ChoiceFilter[intent.Status]{NotIn: []intent.Status{intent.StatusOrphaned}}},
		"type":  {Type: intent.TextFilter{In: []string{"fs::Type07"}}},
		"value": {Value: intent.TextFilter{Like: []string{"%f00%"}}},
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				get(s.FilteredResources(ctx, env, f, intent.ListQuery{Limit: 50}, 12))(b)
				took = append(took, time.Since(begin))
			}
			reportMedian(b, took)
		})
	}
}
