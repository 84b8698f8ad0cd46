package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// addresses are resources such as those of findings B5: of some types and agents, each with a description of its own.
func addresses(n int, before string) []intent.Resource {
	out := make([]intent.Resource, n)
	for i := range out {
		id := intent.ResourceID{
			Type: fmt.Sprintf("bench::Address%d", i%3), Agent: fmt.Sprintf("router%02d", i%20), Attribute: "name",
			Value: fmt.Sprintf("address-%05d", i),
		}
		attributes := fmt.Sprintf(`{"address":"10.%d.%d.1/24","description":"%saddress %d","enabled":true,"mtu":1500,`+
			`"name":%q,"purge_on_delete":false,"purged":false,"receive_events":true,"send_event":true,"vlan":%d,`+
			`"vrf":"customer-%d","zone":"inside"}`, i/250, i%250, before, i, id.Value, i%4000, i%77)
		out[i] = intent.Resource{
			ID: id, Attributes: json.RawMessage(attributes), AttributeHash: fmt.Sprintf("%064d", i),
		}
	}
	return out
}

// comparable stores two versions of 50,000 resources, of which 20,000 differ.
func comparable(tb testing.TB) (*store.Store, intent.Compared) {
	s := storetest.Open(tb)
	env := newEnvironment(tb, s)
	old := addresses(50_000, "")
	next := append(addresses(20_000, "new "), old[20_000:]...)
	of := intent.Compared{Environment: env}
	of.From = get(s.StoreVersion(tb.Context(), version(env, old), epoch))(tb)
	of.To = get(s.StoreVersion(tb.Context(), version(env, next), epoch))(tb)
	return s, of
}

// BenchmarkComparison reads what the console shows of 20,000 changes among 50,000 resources:
//
//	go test ./server/store -run '^$' -bench Comparison -benchtime 10x
func BenchmarkComparison(b *testing.B) {
	s, of := comparable(b)
	var all []intent.DiffEdit
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			all = nil
			if err := s.DiffEdits(b.Context(), of, func(e intent.DiffEdit) { all = append(all, e) }); err != nil ||
				len(all) != 20_000 {
				b.Fatal(len(all), err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			if rows, err := s.Diffs(b.Context(), of, all[10_000:10_050]); err != nil || len(rows) != 50 {
				b.Fatal(len(rows), err)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if all, err := s.DiffVersions(b.Context(), of.Environment, of.From, of.To); err != nil ||
				len(all) != 20_000 {
				b.Fatal(len(all), err)
			}
		}
	})
}
