package admin_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// A catalogue of 1000 services with 10 versions each: what a call costs when nothing changed, and when something did.
func BenchmarkCatalogue(b *testing.B) {
	ctx := b.Context()
	st := storetest.Open(b)
	s := must(admin.New(admin.Config{
		Store: st, Key: must(secret.OpenKey(filepath.Join(b.TempDir(), "key")))(b), Bus: &bus.Bus{},
	}))(b)
	for range 10 {
		var rows []store.ClusterEntity
		for i := range 1000 {
			name := fmt.Sprint("s", i)
			rows = append(rows, store.ClusterEntity{
				Kind: string(catalogue.Services), Name: name, MadeBy: "noor", Content: []byte(`{"name": "` + name + `",
					"provisioner": {"actions": {"install": {"type": "shell", "fields": {"script": "web.sh"}}}}}`),
			})
		}
		stamp := must(st.ClusterEntityStamp(ctx, intent.ProjectID{}))(b)
		if _, written, err := st.AddClusterEntities(ctx, intent.ProjectID{}, stamp, rows); err != nil || !written {
			b.Fatal(written, err)
		}
	}
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			must(s.Catalogue(ctx, intent.ProjectID{}))(b)
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			must(s.Replace(ctx, intent.ProjectID{}, catalogue.Services, "s1", []byte(`{"name": "s1"}`)))(b)
		}
	})
}
