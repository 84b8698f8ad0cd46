package store_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// The windows on 100,000 resources that the reference's web console opens:
//
//	go test ./server/store -run '^$' -bench Window -benchtime 20x
func BenchmarkResourceWindow(b *testing.B) {
	url := storetest.URL(b)
	s := get(store.Open(b.Context(), store.Config{URL: url, Logger: storetest.Logger(b)}))(b)
	defer s.Close()
	env := newEnvironment(b, s)
	release(b, s, env, resources(100_000))
	conn := get(pgx.Connect(b.Context(), url))(b)
	defer conn.Close(context.Background())
	// As after a deployment of all, of which some failed.
	for range 3 {
		get(conn.Exec(b.Context(), `UPDATE resource_state SET last_run_at = now(), last_success = now(),
			last_run = CASE WHEN resource % 2000 = 0 THEN 'failed' ELSE 'successful' END,
			compliance = CASE WHEN resource % 2000 = 0 THEN 'non_compliant' ELSE 'compliant' END`))(b)
	}
	get(conn.Exec(b.Context(), "VACUUM ANALYZE"))(b) // which the database does by itself after a while
	no := false
	common := store.ResourceFilter{Agent: &store.TextFilter{Like: []string{"%host1%"}}}
	rare := store.ResourceFilter{Value: &store.TextFilter{Like: []string{"%nothing%"}}}
	filter := store.ResourceFilter{Orphan: &no}
	middle := get(s.ResourceWindow(b.Context(), env, filter, store.Window{Limit: 1000}, false))(b)
	byType := []store.OrderKey{{Key: "resource_type"}}
	deep := get(s.ResourceWindow(b.Context(), env, filter, store.Window{Limit: 1000, Order: byType}, false))(b)
	for name, c := range map[string]struct {
		filter store.ResourceFilter
		window store.Window
	}{
		"first":       {filter, store.Window{Limit: 50}},
		"next":        {filter, store.Window{Limit: 50, Place: middle.Places[999]}},
		"before":      {filter, store.Window{Limit: 50, Place: middle.Places[999], Backward: true}},
		"type":        {filter, store.Window{Limit: 50, Order: byType}},
		"type next":   {filter, store.Window{Limit: 50, Order: byType, Place: deep.Places[999]}},
		"type desc":   {filter, store.Window{Limit: 50, Order: []store.OrderKey{{Key: "resource_type", Desc: true}}}},
		"agent":       {filter, store.Window{Limit: 50, Order: []store.OrderKey{{Key: "agent"}}}},
		"value":       {filter, store.Window{Limit: 50, Order: []store.OrderKey{{Key: "resource_id_value"}}}},
		"compliance":  {filter, store.Window{Limit: 50, Order: []store.OrderKey{{Key: "compliance"}}}},
		"comp. desc":  {filter, store.Window{Limit: 50, Order: []store.OrderKey{{Key: "compliance", Desc: true}}}},
		"blocked":     {filter, store.Window{Limit: 50, Order: []store.OrderKey{{Key: "blocked"}}}},
		"last run":    {filter, store.Window{Limit: 50, Order: []store.OrderKey{{Key: "last_handler_run"}}}},
		"deploying":   {filter, store.Window{Limit: 50, Order: []store.OrderKey{{Key: "is_deploying", Desc: true}}}},
		"like common": {common, store.Window{Limit: 50}},
		"like rare":   {rare, store.Window{Limit: 50}},
		"version":     {store.ResourceFilter{Version: 1}, store.Window{Limit: 50}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				get(s.ResourceWindow(b.Context(), env, c.filter, c.window, false))(b)
			}
		})
	}
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			get(s.CountResources(b.Context(), env, filter))(b)
		}
	})
	b.Run("summary", func(b *testing.B) {
		for b.Loop() {
			get(s.StateSummary(b.Context(), env))(b)
		}
	})
}
