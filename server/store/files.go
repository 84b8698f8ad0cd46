package store

import (
	"context"
	"crypto/sha1" // names files as clients ask for them; it protects nothing
	"encoding/hex"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// PutFile stores content under its SHA-1 in hex, and returns that. The members of the projects may read it.
func (s *Store) PutFile(ctx context.Context, content []byte, projects ...intent.ProjectID) (string, error) {
	sum := sha1.Sum(content)
	name := hex.EncodeToString(sum[:])
	if content == nil {
		content = []byte{}
	}
	return name, s.write(ctx, "store.PutFile", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.FilePut, name, content)
		if err == nil && len(projects) > 0 {
			_, err = tx.Exec(ctx, statements.FileReader, []string{name}, projects)
		}
		return err
	})
}

// File returns the content with a SHA-1.
func (s *Store) File(ctx context.Context, name string) (content []byte, err error) {
	err = s.read(ctx, "store.File", func(q querier) error {
		return q.QueryRow(ctx, statements.FileGet, name).Scan(&content)
	})
	return content, err
}

// ShareFiles lets the members of a project read files that are stored.
func (s *Store) ShareFiles(ctx context.Context, names []string, project intent.ProjectID) error {
	return s.write(ctx, "store.ShareFiles", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.FileReader, names, []intent.ProjectID{project})
		return err
	})
}

// ReadableFiles returns those of the names whose files the members of one of the projects may read.
func (s *Store) ReadableFiles(
	ctx context.Context, names []string, projects []intent.ProjectID,
) (readable []string, err error) {
	err = s.read(ctx, "store.ReadableFiles", func(q querier) error {
		rows, err := q.Query(ctx, statements.FileReadable, names, projects)
		if err == nil {
			readable, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return readable, err
}

// MissingFiles returns those of the names that are not stored, in the order given.
func (s *Store) MissingFiles(ctx context.Context, names []string) (missing []string, err error) {
	err = s.read(ctx, "store.MissingFiles", func(q querier) error {
		rows, err := q.Query(ctx, statements.FileMissing, names)
		if err == nil {
			missing, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return missing, err
}
