package store

import (
	"context"
	"crypto/sha1" // names files as clients ask for them; it protects nothing
	"encoding/hex"

	"github.com/jackc/pgx/v5"
)

// PutFile stores content under its SHA-1 in hex, and returns that.
func (s *Store) PutFile(ctx context.Context, content []byte) (string, error) {
	sum := sha1.Sum(content)
	name := hex.EncodeToString(sum[:])
	if content == nil {
		content = []byte{}
	}
	return name, s.write(ctx, "store.PutFile", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.FilePut, name, content)
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
