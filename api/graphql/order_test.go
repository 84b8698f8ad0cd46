package graphql_test

import (
	"fmt"
	"slices"
	"testing"

	"ordain.dev/ordain/server/servertest"
	"ordain.dev/ordain/server/store"
)

// A list that is sorted by a part of the state is put together value by value. Whatever the order, the size of pages
// and the direction in which somebody turns them, that shows the same as a list that is sorted whole, as one with a
// filter on a text is.
func TestListsByStateAreWholeAndInOrder(t *testing.T) {
	t.Parallel()
	r := servertest.NewRich(t)
	all := &store.TextFilter{Like: []string{"%"}}
	yes := true
	for _, key := range []string{"blocked", "compliance", "last_handler_run", "is_deploying", "agent"} {
		for _, order := range [][]store.OrderKey{
			{{Key: key}}, {{Key: key, Desc: true}}, {{Key: key}, {Key: "resource_type", Desc: true}},
			{{Key: "resource_type"}, {Key: key}},
		} {
			for name, f := range map[string]store.ResourceFilter{
				"all": {}, "orphans": {Orphan: &yes},
				"compliant": {Compliance: &store.ChoiceFilter{In: []string{"compliant"}}},
			} {
				for _, backward := range []bool{false, true} {
					what := fmt.Sprint(order, " ", name, " backward ", backward)
					walk := func(f store.ResourceFilter, limit int) (ids []string) {
						w := store.Window{Limit: limit, Order: order, Backward: backward}
						for {
							page, err := r.Store.ResourceWindow(t.Context(), r.Production.ID, f, w, false)
							if err != nil {
								t.Fatalf("%s: %v", what, err)
							}
							items := make([]string, 0, len(page.Items))
							for _, item := range page.Items {
								items = append(items, item.State.ID.String())
							}
							if backward {
								ids = append(items, ids...)
							} else {
								ids = append(ids, items...)
							}
							if !page.More {
								return ids
							}
							w.Place = page.Places[len(page.Places)-1]
							if backward {
								w.Place = page.Places[0]
							}
						}
					}
					whole := f
					whole.Value = all
					want := walk(whole, 1000)
					if len(want) == 0 {
						t.Fatalf("%s: nothing", what)
					}
					for _, limit := range []int{37, 1000} {
						if got := walk(f, limit); !slices.Equal(got, want) {
							t.Errorf("%s, %d a page: %d resources, want %d in another order", what, limit, len(got),
								len(want))
						}
					}
				}
			}
		}
	}
}
