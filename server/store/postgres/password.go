package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ordain.dev/ordain/internal/fault"
)

// passwordFile returns the path of the file with the password, in the form that libpq and pgx read.
func passwordFile(dataDir string) string { return dataDir + ".password" }

// ensurePassword gives the role of the cluster a password if there is no file with one, as for a new cluster and for
// one of an earlier version. The database gets a verifier only, so the password is in no process but this one. The file
// is written last: after a crash there is none, and a new password is made.
func ensurePassword(ctx context.Context, cfg Config, p programs, a account) error {
	const op = "postgres.ensurePassword"
	path := passwordFile(cfg.DataDir)
	info, err := os.Lstat(path)
	if err == nil {
		if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 || ownerOf(info) != os.Geteuid() {
			return fault.New(op, fault.Forbidden, "others may read or write "+path+", the password of the database").
				Hint("remove the file: the next start makes a new password")
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return inWords(op, err)
	}
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		return inWords(op, err)
	}
	password := hex.EncodeToString(raw)
	verifier, err := scramVerifier(password)
	if err != nil {
		return inWords(op, err)
	}
	if err := single(ctx, p, a, cfg.DataDir, "ALTER ROLE "+role+" PASSWORD '"+verifier+"'"); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".password-*") // with mode 0600
	if err != nil {
		return inWords(op, err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString("# Written by Ordain. Remove this file while the server is down to have a new password " +
		"made.\n*:*:*:" + role + ":" + password + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return inWords(op, err)
	}
	return inWordsOrNil(op, os.Rename(f.Name(), path))
}

// iterations is how often the password is hashed on each side of every new connection. More would slow down those who
// guess passwords; this one is random and has 192 bits.
const iterations = 1

// scramVerifier returns what PostgreSQL keeps of a password.
func scramVerifier(password string) (string, error) {
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	keyed := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(keyed("Client Key"))
	text := base64.StdEncoding.EncodeToString
	keys := text(stored[:]) + ":" + text(keyed("Server Key"))
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s", iterations, text(salt), keys), nil
}
