package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type environmentRow struct {
	ID          uuid.UUID
	Project     uuid.UUID
	ProjectName string
	Name        string
	RepoURL     string
	RepoBranch  string
	RepoSubdir  string
	Description string
	Icon        string
	Halted      bool
	HaltedBy    string
	HaltedAt    *time.Time
	// HaltedReason is that of the last halt, which is kept among the interventions.
	HaltedReason string
	Tags         []string
	Settings     json.RawMessage
	Protected    json.RawMessage
	Created      time.Time
	Number       int
	Overrides    json.RawMessage // those that are in force
}

func (r environmentRow) value() (intent.Environment, error) {
	settings := map[string]any{}
	var protected map[string]string
	err := errors.Join(json.Unmarshal(r.Settings, &settings), json.Unmarshal(r.Protected, &protected))
	var rows []overrideRow
	err = errors.Join(err, json.Unmarshal(r.Overrides, &rows))
	overrides, _ := convert(rows, overrideRow.value)
	return intent.Environment{
		HaltedBy: r.HaltedBy, HaltedAt: utc(r.HaltedAt), HaltedReason: r.HaltedReason, Overrides: overrides,
		ID: r.ID, ProjectID: r.Project, ProjectName: r.ProjectName, Name: r.Name,
		Source:      intent.Source{URL: r.RepoURL, Branch: r.RepoBranch, Subdir: r.RepoSubdir},
		Description: r.Description, Icon: r.Icon, Halted: r.Halted, Tags: r.Tags, Settings: settings,
		Protected: protected, Created: r.Created.UTC(), Number: r.Number,
	}, err
}

// CreateEnvironment stores an environment with its settings and sealed secrets, in one step; Conflict for a name or id
// that is taken, NotFound when there is no such project, Forbidden when the project's quota is used up.
func (s *Store) CreateEnvironment(ctx context.Context, e intent.Environment, secrets map[string][]byte) error {
	if e.Tags == nil {
		e.Tags = []string{}
	}
	if e.Settings == nil {
		e.Settings = map[string]any{}
	}
	settings, err := json.Marshal(e.Settings)
	if err != nil {
		return fault.Wrap("store.CreateEnvironment", fault.Invalid, err)
	}
	const op = "store.CreateEnvironment"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if err := growProject(ctx, tx, op, e.ProjectID, intent.QuotaEnvironments, 1); err != nil {
			return err
		}
		_, err := tx.Exec(
			ctx,
			statements.EnvironmentCreate,
			e.ID,
			e.ProjectID,
			e.Name,
			e.Source.URL,
			e.Source.Branch,
			e.Source.Subdir,
			e.Description,
			e.Icon,
			e.Halted,
			string(settings),
			e.Created,
			e.Tags,
			cleanText(e.HaltedBy),
			e.HaltedAt,
		)
		if err != nil {
			return err
		}
		for name, sealed := range secrets {
			if _, err := tx.Exec(ctx, statements.SecretSet, e.ID, name, sealed); err != nil {
				return err
			}
		}
		if e.HaltedAt == nil {
			return nil
		}
		return intervene(ctx, tx, e.ID, intent.DidHalt, "", intent.Actor{By: e.HaltedBy, At: *e.HaltedAt})
	})
}

// Environments lists all environments by project name and name.
func (s *Store) Environments(ctx context.Context) (out []intent.Environment, err error) {
	return listed(ctx, s, "store.Environments", environmentRow.value, statements.EnvironmentList)
}

// Environment returns one environment.
func (s *Store) Environment(ctx context.Context, id intent.EnvironmentID) (out intent.Environment, err error) {
	err = s.read(ctx, "store.Environment", func(q querier) error {
		row, err := one[environmentRow](ctx, q, statements.EnvironmentGet, id)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// UpdateEnvironment stores name, project, source, description and icon. Environments that follow it keep following it
// under its new name.
func (s *Store) UpdateEnvironment(ctx context.Context, e intent.Environment) error {
	const op = "store.UpdateEnvironment"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if err := mayMove(ctx, tx, op, e.ID, e.ProjectID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.FollowRename, e.ID, e.Name); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.FileReaderMove, e.ID, e.ProjectID); err != nil {
			return err
		}
		return affected(tx.Exec(ctx, statements.EnvironmentUpdate, e.ID, e.ProjectID, e.Name,
			e.Source.URL, e.Source.Branch, e.Source.Subdir, e.Description, e.Icon))
	})
}

// SetTags replaces the tags of an environment.
func (s *Store) SetTags(ctx context.Context, id intent.EnvironmentID, tags []string) error {
	return s.write(ctx, "store.SetEnvironmentTags", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.EnvironmentTags, id, append([]string{}, tags...)))
	})
}

// SetHalted halts or resumes an environment, and records who did when that changes something.
func (s *Store) SetHalted(ctx context.Context, id intent.EnvironmentID, halted bool, by intent.Actor) error {
	return s.write(ctx, "store.SetHalted", func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, id); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, statements.EnvironmentHalt, id, halted, cleanText(by.By), by.At)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return intervene(ctx, tx, id, did(halted, intent.DidHalt, intent.DidResume), "", by)
	})
}

// DeleteEnvironment deletes an environment with all that belongs to it.
func (s *Store) DeleteEnvironment(ctx context.Context, id intent.EnvironmentID) error {
	return s.write(ctx, "store.DeleteEnvironment", func(tx pgx.Tx) error {
		if err := clearEnvironment(ctx, tx, id); err != nil {
			return err
		}
		if err := affected(tx.Exec(ctx, statements.EnvironmentDelete, id)); err != nil {
			return err
		}
		// Entries of the log have no foreign key. Their writers lock the environment's row, so all of them are
		// visible now, and none comes later.
		_, err := tx.Exec(ctx, statements.ClearActions, id)
		return err
	})
}

// ClearEnvironment deletes all but the environment itself, its settings and secrets. Version numbers go on where they
// were: a number never means two versions.
func (s *Store) ClearEnvironment(ctx context.Context, id intent.EnvironmentID) error {
	return s.write(ctx, "store.ClearEnvironment", func(tx pgx.Tx) error {
		return clearEnvironment(ctx, tx, id)
	})
}

// refuseClusters keeps an environment whose clusters have machines: nobody would know of them any more.
func refuseClusters(ctx context.Context, tx pgx.Tx, id intent.EnvironmentID) error {
	var live int
	if err := tx.QueryRow(ctx, statements.ClusterLive, id).Scan(&live); err != nil || live == 0 {
		return err
	}
	return fault.New("store.DeleteEnvironment", fault.Conflict,
		fmt.Sprintf("the environment has clusters with machines: %d", live)).
		Hint("delete them first, with ordain cluster delete, and wait until their machines are gone")
}

func clearEnvironment(ctx context.Context, tx pgx.Tx, id intent.EnvironmentID) error {
	if _, err := lockEnvironment(ctx, tx, id); err != nil {
		return err
	}
	if err := refuseClusters(ctx, tx, id); err != nil {
		return err
	}
	for _, sql := range []string{
		statements.ClearActions, statements.AheadForget, statements.ClearDryRuns, statements.ClearFactRequests,
		statements.ClearStates, statements.ClearVersions, statements.ClearContents, statements.ClearResources,
		statements.ClearCompiles, statements.ClearAgents, statements.ClearParameters, statements.ClearDrift,
		statements.ClearNotifications,
		statements.ClearDiscovered, statements.ClearDeliveries,
		statements.ClearOverrides, statements.ClearCommands, statements.ClearLoans, statements.ClearClusters,
		statements.ClearPulls, statements.ClearOutbox, statements.ClearDeployStatus,
		statements.ClearPromotions,
	} {
		if _, err := tx.Exec(ctx, sql, id); err != nil {
			return err
		}
	}
	// A process that owns it cannot write any more what it knew of the record.
	if _, err := tx.Exec(ctx, statements.OwnNext, id); err != nil {
		return err
	}
	return collectCode(ctx, tx)
}

// lockEnvironment makes the transaction the only one that compiles, stores, releases or deletes in the environment,
// and returns the number of the last version.
func lockEnvironment(ctx context.Context, tx pgx.Tx, id intent.EnvironmentID) (last int, err error) {
	err = tx.QueryRow(ctx, statements.EnvironmentLock, id).Scan(&last)
	if isNoRows(err) {
		err = fault.New("store.lockEnvironment", fault.NotFound, "there is no such environment")
	}
	return last, err
}

// ProtectSettings stores converted values, which by decides from now on. Settings that it decided before and no
// longer names keep their value and may be changed by anyone again.
func (s *Store) ProtectSettings(ctx context.Context, id intent.EnvironmentID, values map[string]any, by string) error {
	const op = "store.ProtectSettings"
	if values == nil {
		values = map[string]any{}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return fault.Wrap(op, fault.Invalid, err)
	}
	return s.write(ctx, op, func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.SettingsProtect, id, string(text), by))
	})
}

// SetSetting stores a converted value; nil restores the default.
func (s *Store) SetSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error {
	const op = "store.SetEnvironmentSetting"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if value == nil {
			return affected(tx.Exec(ctx, statements.SettingDelete, id, name))
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fault.Wrap(op, fault.Invalid, err)
		}
		return affected(tx.Exec(ctx, statements.SettingSet, id, name, string(text)))
	})
}

// SetSecret stores sealed bytes under a name (webhook, git-username, git-password …); nil deletes it.
func (s *Store) SetSecret(ctx context.Context, id intent.EnvironmentID, name string, sealed []byte) error {
	return s.write(ctx, "store.SetEnvironmentSecret", func(tx pgx.Tx) error {
		if sealed == nil {
			_, err := tx.Exec(ctx, statements.SecretDelete, id, name)
			return err
		}
		_, err := tx.Exec(ctx, statements.SecretSet, id, name, sealed)
		return err
	})
}

type secretRow struct {
	Name   string
	Sealed []byte
}

// Secrets returns all sealed secrets of an environment by name.
func (s *Store) Secrets(ctx context.Context, id intent.EnvironmentID) (map[string][]byte, error) {
	out := make(map[string][]byte)
	err := s.read(ctx, "store.EnvironmentSecrets", func(q querier) error {
		rows, err := many[secretRow](ctx, q, statements.SecretList, id)
		for _, r := range rows {
			out[r.Name] = r.Sealed
		}
		return err
	})
	return out, err
}

// exists fails with NotFound for a missing environment, for lists that would be empty.
func (s *Store) exists(ctx context.Context, q querier, id intent.EnvironmentID) error {
	var found bool
	err := q.QueryRow(ctx, statements.EnvironmentExists, id).Scan(&found)
	if err == nil && !found {
		err = fault.New("store.exists", fault.NotFound, "there is no such environment")
	}
	return err
}
