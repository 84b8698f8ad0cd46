package blob

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
)

// A stored content begins with a header of a fixed size, which is sealed for the hash. It has the size of the content
// and an id; the chunks are sealed for that id and their number:
//
//	magic │ sealed{id, size} │ sealed{chunk 0} │ sealed{chunk 1} │ …
//	         └ "…header HASH"   └ "…chunk ID 0"   └ "…chunk ID 1"
//
// So chunks cannot change places, within a content or between two, and none can be missing at the end. The hash is
// known only after the last chunk; therefore the header is written last, and the chunks are not sealed for the hash.
const (
	magic      = "ordain blob 1\n"
	chunkSize  = 1 << 20
	idSize     = 16
	sealExtra  = 1 + 12 + 16 // bytes that secret.Key adds: its format, nonce and tag; a test compares
	headerSize = len(magic) + sealExtra + idSize + 8
)

func headerContext(hash string) string { return "cluster resource header " + hash }

func chunkContext(id []byte, number int64) string {
	return fmt.Sprintf("cluster resource chunk %x %d", id, number)
}

// seal writes what r returns to a file that is empty, and returns its hash and size. Errors of r are returned as they
// are.
func seal(ctx context.Context, key *secret.Key, f *os.File, r io.Reader) (string, int64, error) {
	const op = "blob.Put"
	id := make([]byte, idSize)
	if _, err := rand.Read(id); err != nil {
		return "", 0, fault.Wrap(op, fault.Internal, err)
	}
	if _, err := f.Write(make([]byte, headerSize)); err != nil {
		return "", 0, fault.Disk(op, f.Name(), err)
	}
	sum, size, chunk := sha256.New(), int64(0), make([]byte, chunkSize)
	for number := int64(0); ; number++ {
		if err := ctx.Err(); err != nil {
			return "", 0, fault.Wrap(op, fault.Unavailable, err).Say("the upload was given up")
		}
		n, err := io.ReadFull(r, chunk)
		end := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !end {
			return "", 0, err
		}
		if n > 0 {
			sum.Write(chunk[:n])
			size += int64(n)
			sealed, err := key.Seal(chunk[:n], chunkContext(id, number))
			if err != nil {
				return "", 0, err
			}
			if _, err := f.Write(sealed); err != nil {
				return "", 0, fault.Disk(op, f.Name(), err)
			}
		}
		if end {
			break
		}
	}
	hash := hexOf(sum.Sum(nil))
	sealed, err := key.Seal(binary.BigEndian.AppendUint64(id, uint64(size)), headerContext(hash))
	if err != nil {
		return "", 0, err
	}
	if _, err := f.WriteAt(append([]byte(magic), sealed...), 0); err != nil {
		return "", 0, fault.Disk(op, f.Name(), err)
	}
	return hash, size, nil
}

// open returns the content of what seal wrote. It closes stored, also when it fails.
func open(key *secret.Key, hash string, stored io.ReadCloser) (Content, error) {
	const op = "blob.Open"
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(stored, header); err != nil {
		_ = stored.Close()
		return Content{}, unreadable(op, hash, err)
	}
	if string(header[:len(magic)]) != magic {
		_ = stored.Close()
		return Content{}, damaged(op, hash)
	}
	plain, err := key.Open(header[len(magic):], headerContext(hash))
	if err != nil {
		_ = stored.Close()
		return Content{}, fault.Wrap(op, fault.Internal, err).
			Say("the content " + hash + " of a resource cannot be opened")
	}
	size := int64(binary.BigEndian.Uint64(plain[idSize:]))
	c := &unsealer{
		key: key, hash: hash, stored: stored, r: bufio.NewReaderSize(stored, 64<<10), id: plain[:idSize], left: size,
		sum: sha256.New(),
	}
	return Content{ReadCloser: c, Size: size}, nil
}

// unreadable turns an error of what is stored into a fault. Faults stay as they are.
func unreadable(op, hash string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return damaged(op, hash)
	}
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		return err
	}
	return fault.Wrap(op, fault.Unavailable, err).Say("the content " + hash + " of a resource cannot be read")
}

// unsealer reads the chunks of a stored content.
type unsealer struct {
	key    *secret.Key
	hash   string
	stored io.Closer
	r      io.Reader
	id     []byte
	number int64
	left   int64  // bytes of the content in chunks that were not opened yet
	chunk  []byte // what is left of the one that was
	sum    hash.Hash
	err    error
}

func (u *unsealer) Read(p []byte) (int, error) {
	if len(u.chunk) == 0 && u.err == nil {
		u.err = u.next()
	}
	if u.err != nil {
		return 0, u.err
	}
	n := copy(p, u.chunk)
	u.chunk = u.chunk[n:]
	return n, nil
}

// next opens the next chunk, or returns io.EOF.
func (u *unsealer) next() error {
	const op = "blob.Read"
	if u.left == 0 {
		if hexOf(u.sum.Sum(nil)) != u.hash {
			return damaged(op, u.hash)
		}
		return io.EOF
	}
	sealed := make([]byte, min(u.left, chunkSize)+sealExtra)
	if _, err := io.ReadFull(u.r, sealed); err != nil {
		return unreadable(op, u.hash, err)
	}
	chunk, err := u.key.Open(sealed, chunkContext(u.id, u.number))
	if err != nil {
		return damaged(op, u.hash)
	}
	u.sum.Write(chunk)
	u.number++
	u.left -= int64(len(chunk))
	u.chunk = chunk
	return nil
}

func (u *unsealer) Close() error {
	if u.err == nil {
		u.err = os.ErrClosed
	}
	return u.stored.Close()
}
