// Package blob keeps the contents of plug-in resources: in a folder, or in a bucket of
// an S3-compatible service. A content is known by the SHA-256 of its bytes, so the same
// content is kept once, and whoever reads it can tell that it is the right one.
//
//	Put:   reader ─▶ spool: sealed, in chunks, in a file of its own ─▶ published under its hash
//	Open:  stored ─▶ header opened: it belongs to this hash ─▶ chunks opened ─▶ hash compared
//
// Among the contents are private keys, so all of them are sealed with the key of the
// server before they reach the disk or the network; see sealed.go. Nothing here knows
// which contents are still needed: package resources does.
package blob

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Info describes a stored content.
type Info struct {
	Hash     string // SHA-256 of the content, in lower-case hexadecimal digits
	Stored   int64  // bytes that it takes: a little more than the content has
	Modified time.Time
}

// Content is a stored content that is being read. At its end Read reports an error, and not io.EOF, if what was read
// does not have the hash.
type Content struct {
	io.ReadCloser
	Size int64 // of the content
}

// Store keeps contents. It is safe for concurrent use, also by several processes.
type Store interface {
	// Put keeps all that r returns. Until it returns nil, nothing can be opened. Putting a content again is not wrong,
	// and makes it as young as a new one. Errors of r are returned as they are.
	Put(ctx context.Context, r io.Reader) (hash string, size int64, err error)
	// Open returns a content. The caller closes it; the context must live as long. NotFound: there is no such content.
	Open(ctx context.Context, hash string) (Content, error)
	// Stat describes a content. NotFound: there is no such content.
	Stat(ctx context.Context, hash string) (Info, error)
	// Delete removes a content. It is not an error if there is none.
	Delete(ctx context.Context, hash string) error
	// List calls f for every content, in no order, until f fails. Files that are no contents are left out.
	List(ctx context.Context, f func(Info) error) error
	// Sweep removes what broken calls of Put left before that time.
	Sweep(ctx context.Context, before time.Time) error
}

// IsHash reports whether a text may be the hash of a content. No other text gets into a path.
func IsHash(text string) bool {
	if len(text) != 64 {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// check refuses what is not a hash.
func check(op, hash string) error {
	if !IsHash(hash) {
		return fault.New(op, fault.Invalid, fmt.Sprintf("%.80q is not the SHA-256 of a content", hash))
	}
	return nil
}

func notFound(op, hash string) error {
	return fault.New(op, fault.NotFound, "the content "+hash+" is not in the resource store").
		Hint("upload the resource again; if the store is a folder, is it the one that the resource was uploaded to?")
}

func damaged(op, hash string) *fault.Error {
	return fault.New(op, fault.Internal, "the stored content "+hash+" is damaged").
		Hint("restore it from your backup, or upload the resource again")
}

func hexOf(sum []byte) string { return hex.EncodeToString(sum) }
