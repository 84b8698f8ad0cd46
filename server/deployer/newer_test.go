package deployer

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// counting counts how often a version is read whole, and how many resources are read of versions that are read by
// their changes.
type counting struct {
	*store.Store
	whole, parts int
}

func (c *counting) VersionResources(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
) ([]intent.Resource, error) {
	c.whole++
	return c.Store.VersionResources(ctx, env, number)
}

func (c *counting) VersionChanges(
	ctx context.Context,
	env intent.EnvironmentID,
	from, number int,
	purged []intent.ResourceID,
) ([]intent.Resource, int, error) {
	out, total, err := c.Store.VersionChanges(ctx, env, from, number, purged)
	c.parts += len(out)
	return out, total, err
}

// A deployer that knows a version reads only the changes of a newer one, and gets the same as by reading it whole:
// whatever came, went, was purged or is to be kept again meanwhile, also in versions that it never saw.
func TestNewerVersionsAreReadByWhatChanged(t *testing.T) {
	t.Parallel()
	db, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, db)
	rec := &counting{Store: db}
	d, err := New(Config{Environment: env, Store: rec, Executor: idle{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 22))
	model := make([]string, 60)
	release := func(changes int) int {
		for range changes {
			model[random.IntN(len(model))] = []string{"", "1", "2", "purged", "purged"}[random.IntN(5)]
		}
		v := intent.NewVersion{Environment: env.ID}
		for i, value := range model {
			if value == "" {
				continue
			}
			r := resource(fmt.Sprintf("a%d/r%02d %s", i%3, i, value))
			r.Purged = value == "purged"
			if need := (i*7 + len(value)) % len(model); need < i && model[need] != "" {
				r.Requires = []intent.ResourceID{rid(fmt.Sprintf("a%d/r%02d", need%3, need))}
			}
			v.Resources = append(v.Resources, r)
		}
		number, err := db.StoreVersion(ctx, v, now())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.ReleaseVersion(ctx, env.ID, number, now()); err != nil {
			t.Fatal(err)
		}
		return number
	}
	for i := range model {
		model[i] = "1"
	}
	from := release(0)
	known, err := db.VersionResources(ctx, env.ID, from)
	if err != nil {
		t.Fatal(err)
	}
	same := func(from int, known []intent.Resource, number int) []intent.Resource {
		got, code, err := d.readNewer(ctx, from, known, number)
		if err != nil || code == nil {
			t.Fatal(code, err)
		}
		want, err := db.VersionResources(ctx, env.ID, number)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("version %d, read whole (-) and by what changed since %d (+):\n%s", number, from, diff)
		}
		return got
	}
	kept := 0
	for round := range 60 {
		number := 0
		for range 1 + round%3 {
			number = release(1 + round%4)
		}
		before := gocmp.Diff(nil, known)
		got := same(from, known, number)
		if gocmp.Diff(nil, known) != before {
			t.Fatal("what was known changed")
		}
		for i := range got {
			kept += len(got[i].KeptRequires)
		}
		from, known = number, got
	}
	if rec.whole > 0 || kept < 20 {
		t.Errorf("%d versions were read whole, %d kept requires", rec.whole, kept)
	}

	// Purged before and after in the same way, and meanwhile kept with another need.
	for _, value := range []string{"1", "purged"} {
		model[0], model[1], model[17] = "1", "1", value
		from = release(0)
	}
	if known, err = db.VersionResources(ctx, env.ID, from); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"22", "purged"} {
		model[17] = value
		same(from, known, release(0))
	}

	// Nothing but the one that changed.
	for i := range model {
		model[i] = "1"
	}
	from = release(0)
	if known, err = db.VersionResources(ctx, env.ID, from); err != nil {
		t.Fatal(err)
	}
	model[11], rec.parts = "2", 0
	number := release(0)
	if got, _, err := d.readNewer(ctx, from, known, number); err != nil || rec.parts != 1 || len(got) != len(model) {
		t.Errorf("%d of %d resources were read, %v", rec.parts, len(got), err)
	}

	// A version that was deleted from the record is no base: the newer one is read whole.
	model[12], model[13] = "2", ""
	next := release(0)
	if _, err := db.PruneVersions(ctx, env.ID, 0); err != nil {
		t.Fatal(err)
	}
	if same(from, known, next); rec.whole != 1 {
		t.Errorf("read whole %d times", rec.whole)
	}
}
