// Package jointoken has the rules of join tokens, which agents and provisioners have in common: a token is for one of
// them, works once, lasts an hour unless somebody says otherwise, and is kept as the hash of its secret.
//
//	New ─▶ secret, for the person who asked; hash, for the record
//	what somebody sends ─▶ Hash ─▶ Same as the one in the record?
package jointoken

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Limits of join tokens.
const (
	DefaultLifetime = time.Hour
	MaxLifetime     = 7 * 24 * time.Hour
	// KeepEnded is how long people see those that have ended.
	KeepEnded = 30 * 24 * time.Hour
	// MaxWaiting is how many that can still be used an environment or a project may have.
	MaxWaiting = 1000
)

// New makes a secret, and the hash by which it is recognized.
func New() (secret, hash string, err error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", "", err
	}
	secret = base64.RawURLEncoding.EncodeToString(random)
	return secret, Hash(secret), nil
}

// Hash returns the hash of a secret. It need not be slow: secrets are random.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Same compares hashes in constant time.
func Same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Lifetime returns how long a token lasts for which somebody asked; none means an hour.
func Lifetime(asked time.Duration) (time.Duration, error) {
	switch {
	case asked == 0:
		return DefaultLifetime, nil
	case asked < time.Minute || asked > MaxLifetime:
		return 0, errors.New("a join token lasts a minute at least and seven days at most")
	}
	return asked, nil
}

// CheckName refuses what cannot be the name of what joins; whose is agent or provisioner, longest is in bytes.
func CheckName(whose, name string, longest int) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return fmt.Errorf("the name of the %s is empty, or has spaces at an end", whose)
	case len(name) > longest || !utf8.ValidString(name):
		return fmt.Errorf("the name of the %s is longer than %d bytes, or not UTF-8", whose, longest)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name of the %s has control characters", whose)
	}
	return nil
}

// Notices counts refusals of tokens, so that the audit trail has one of each per minute. The zero value is ready; it is
// safe for concurrent use.
type Notices struct {
	mu   sync.Mutex
	last map[uuid.UUID]time.Time
}

// Due reports whether a refusal belongs into the audit trail.
func (n *Notices) Due(token uuid.UUID, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.last[token]) < time.Minute {
		return false
	}
	if n.last == nil || len(n.last) > 10_000 {
		n.last = map[uuid.UUID]time.Time{}
	}
	n.last[token] = now
	return true
}

// Stamp writes a time for people.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
