package store

import (
	"context"
	"time"

	"ordain.dev/ordain/internal/intent"
)

type settingChangeRow struct {
	Name  string
	Actor string
	At    time.Time
}

// SettingChanges returns who last changed each setting of an environment, and when, as far back as the audit trail
// goes.
func (s *Store) SettingChanges(
	ctx context.Context, id intent.EnvironmentID,
) (changes map[string]intent.Actor, err error) {
	changes = map[string]intent.Actor{}
	err = s.read(ctx, "store.SettingChanges", func(q querier) error {
		rows, err := many[settingChangeRow](ctx, q, statements.SettingChanges, id)
		for _, r := range rows {
			changes[r.Name] = intent.Actor{By: r.Actor, At: r.At.UTC()}
		}
		return err
	})
	return changes, err
}
