package store

import (
	"context"
	"time"

	"ordain.dev/ordain/internal/intent"
)

type waitRow struct {
	ID          string
	Paused      bool
	Unreachable *time.Time
	Need        string
	Status      string
}

func (r waitRow) value() (w intent.ResourceWait, err error) {
	w.AgentPaused, w.Unreachable = r.Paused, utc(r.Unreachable)
	if w.ID, err = intent.ParseResourceID(r.ID); err != nil || r.Need == "" {
		return w, err
	}
	w.Status = intent.Status(r.Status)
	w.Need, err = intent.ParseResourceID(r.Need)
	return w, err
}

// ResourceWaits says for what each of the given resources waits, in no order. It leaves out those that do not exist,
// and looks at the first hundred requirements of each.
func (s *Store) ResourceWaits(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []intent.ResourceID,
) ([]intent.ResourceWait, error) {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return listed(ctx, s, "store.ResourceWaits", waitRow.value, statements.ResourceWaits, env, texts)
}
