package console

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// While somebody looks at the list of environments, those that begin to fail stay where they are, and new ones come
// last. Another visit has them as they are pressing.
func TestTheListOfEnvironmentsStaysInPlace(t *testing.T) {
	one := func() intent.Environment { return intent.Environment{ID: uuid.New()} }
	a, b, c := one(), one(), one()
	same := func(got []intent.Environment, want ...intent.Environment) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(x, y intent.Environment) bool { return x.ID == y.ID }) {
			t.Errorf("the order is %v, want %v", got, want)
		}
	}
	ctx := keepHomeOrder(t.Context())
	same(inHomeOrder(ctx, []intent.Environment{a, b}), a, b)
	pressing := []intent.Environment{c, b, a}
	same(inHomeOrder(ctx, pressing), a, b, c)
	same(pressing, c, b, a)
	same(inHomeOrder(t.Context(), pressing), c, b, a)
}
