package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// A person says that a cluster may end, and its pull request is never merged. What was said counts for a week: a wrong
// branch that lacks the file a month later deletes nothing. A file that comes back takes it back at once.
func TestLeaveToDeleteAClusterEnds(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), storetest.URL(t)
	s := get(store.Open(ctx, store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
	t.Cleanup(s.Close)
	env := newEnvironment(t, s)
	c := intent.Cluster{ID: uuid.New(), Environment: env, Name: "shop", Owner: "anna", Wanted: []byte(`{}`)}
	must(t, s.AddCluster(ctx, c))
	may := func(want bool, when string) {
		t.Helper()
		if got := get(s.Cluster(ctx, env, "shop"))(t); got.MayDelete != want {
			t.Errorf("%s the cluster may be deleted: %t", when, got.MayDelete)
		}
	}
	may(false, "at first")
	must(t, s.AllowClusterEnd(ctx, c.ID, true))
	may(true, "after it was asked for")
	db := get(pgx.Connect(ctx, url))(t)
	defer func() { _ = db.Close(ctx) }()
	pass := func(time string) {
		t.Helper()
		_, err := db.Exec(ctx, `UPDATE cluster SET may_delete = may_delete - $1::interval`, time)
		must(t, err)
	}
	pass("6 days 23 hours")
	may(true, "within the week")
	pass("2 hours")
	may(false, "after the week")

	must(t, s.AllowClusterEnd(ctx, c.ID, true))
	must(t, s.WantCluster(ctx, c))
	may(false, "after its file came back")
}
