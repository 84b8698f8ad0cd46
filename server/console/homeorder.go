package console

import (
	"cmp"
	"context"
	"slices"

	"ordain.dev/ordain/internal/intent"
)

// homeOrder is the order in which one live list of environments began. It stays the same while the page is open: no
// element moves away under the pointer, and a click opens the environment that was meant. The next visit has the most
// pressing ones first again. It belongs to one stream, whose loads follow each other.
type homeOrder struct{ places map[intent.EnvironmentID]int }

type homeOrderKey struct{}

// keepHomeOrder lets the loads of a stream keep one order.
func keepHomeOrder(ctx context.Context) context.Context {
	return context.WithValue(ctx, homeOrderKey{}, &homeOrder{})
}

// inHomeOrder returns environments in the order of the stream. New ones come last.
func inHomeOrder(ctx context.Context, all []intent.Environment) []intent.Environment {
	order, live := ctx.Value(homeOrderKey{}).(*homeOrder)
	if !live {
		return all
	}
	if order.places == nil {
		order.places = map[intent.EnvironmentID]int{}
	}
	for _, e := range all {
		if _, known := order.places[e.ID]; !known {
			order.places[e.ID] = len(order.places)
		}
	}
	all = slices.Clone(all) // several people share it
	slices.SortStableFunc(all, func(a, b intent.Environment) int {
		return cmp.Compare(order.places[a.ID], order.places[b.ID])
	})
	return all
}
