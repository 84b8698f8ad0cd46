package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

type projectRow struct {
	ID   uuid.UUID
	Name string
}

func (r projectRow) value() (intent.Project, error) {
	return intent.Project{ID: r.ID, Name: r.Name}, nil
}

// CreateProject stores a project; Conflict for a name or id that is taken.
func (s *Store) CreateProject(ctx context.Context, p intent.Project) error {
	return s.write(ctx, "store.CreateProject", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.ProjectCreate, p.ID, p.Name)
		return err
	})
}

// Projects lists all projects by name.
func (s *Store) Projects(ctx context.Context) (out []intent.Project, err error) {
	return listed(ctx, s, "store.Projects", projectRow.value, statements.ProjectList)
}

// Project returns one project.
func (s *Store) Project(ctx context.Context, id intent.ProjectID) (out intent.Project, err error) {
	err = s.read(ctx, "store.Project", func(q querier) error {
		row, err := one[projectRow](ctx, q, statements.ProjectGet, id)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// RenameProject changes the name of a project.
func (s *Store) RenameProject(ctx context.Context, id intent.ProjectID, name string) error {
	return s.write(ctx, "store.RenameProject", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.ProjectRename, id, name))
	})
}

// DeleteProject deletes a project with all that belongs to it.
func (s *Store) DeleteProject(ctx context.Context, id intent.ProjectID) error {
	return s.write(ctx, "store.DeleteProject", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, statements.EnvironmentsOf, id)
		if err != nil {
			return err
		}
		envs, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return err
		}
		for _, env := range envs {
			if err := clearEnvironment(ctx, tx, env); err != nil {
				return err
			}
		}
		return affected(tx.Exec(ctx, statements.ProjectDelete, id))
	})
}

// SetProjectSecret stores sealed bytes under a name; nil deletes it.
func (s *Store) SetProjectSecret(ctx context.Context, id intent.ProjectID, name string, sealed []byte) error {
	return s.write(ctx, "store.SetProjectSecret", func(tx pgx.Tx) error {
		if sealed == nil {
			_, err := tx.Exec(ctx, statements.ProjectSecretDelete, id, name)
			return err
		}
		_, err := tx.Exec(ctx, statements.ProjectSecretSet, id, name, sealed)
		return err
	})
}

// ProjectSecrets returns all sealed secrets of a project by name.
func (s *Store) ProjectSecrets(ctx context.Context, id intent.ProjectID) (map[string][]byte, error) {
	out := make(map[string][]byte)
	err := s.read(ctx, "store.ProjectSecrets", func(q querier) error {
		rows, err := many[secretRow](ctx, q, statements.ProjectSecretList, id)
		for _, r := range rows {
			out[r.Name] = r.Sealed
		}
		return err
	})
	return out, err
}

type knownHostsRow struct{ KnownHosts string }

// KnownHosts returns the keys of the SSH servers that a project trusts, in OpenSSH's format.
func (s *Store) KnownHosts(ctx context.Context, id intent.ProjectID) (string, error) {
	var out knownHostsRow
	err := s.read(ctx, "store.Project", func(q querier) (err error) {
		out, err = one[knownHostsRow](ctx, q, statements.ProjectKnownHosts, id)
		return err
	})
	return out.KnownHosts, err
}

// SetKnownHosts replaces the keys of SSH servers.
func (s *Store) SetKnownHosts(ctx context.Context, id intent.ProjectID, lines string) error {
	return s.write(ctx, "store.Project", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.ProjectKnownHostsSet, id, lines))
	})
}

// AddKnownHost adds the key of an SSH server, a line in OpenSSH's format, unless it is there.
func (s *Store) AddKnownHost(ctx context.Context, id intent.ProjectID, line string) error {
	return s.write(ctx, "store.Project", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.ProjectKnownHostsAdd, id, line)
		return err
	})
}
