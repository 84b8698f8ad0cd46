package store

import (
	"context"
	"crypto/sha1" // the name of a file, not a seal: clients ask by it
	"encoding/hex"

	"github.com/jackc/pgx/v5"
)

// PutFile stores content under its SHA-1, which it gives.
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

// File gives stored content.
func (s *Store) File(ctx context.Context, name string) (content []byte, err error) {
	err = s.read(ctx, "store.File", func(q querier) error {
		return q.QueryRow(ctx, statements.FileGet, name).Scan(&content)
	})
	return content, err
}

// MissingFiles tells which of these are not stored, in the order given.
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
