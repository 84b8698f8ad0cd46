package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
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

// SetSettings stores converted values in one step; a value of nil restores the default.
func (s *Store) SetSettings(ctx context.Context, id intent.EnvironmentID, values map[string]any) error {
	const op = "store.SetSettings"
	text, err := json.Marshal(values)
	if err != nil {
		return fault.Wrap(op, fault.Invalid, err)
	}
	return s.write(ctx, op, func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.SettingsSet, id, string(text)))
	})
}
