package objects

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// Write stores objects as a pack without deltas: looking for deltas would take more time
// than the space is worth.
func (s *Store) Write(all []plumbing.Hash, read func(plumbing.Hash) (plumbing.EncodedObject, error)) error {
	if len(all) == 0 {
		return nil
	}
	out, err := s.newPack()
	if err != nil {
		return err
	}
	defer out.discard()
	w, err := newPackWriter(out.file, len(all))
	if err != nil {
		return err
	}
	for _, h := range all {
		o, err := read(h)
		if err != nil {
			return err
		}
		if err := w.whole(h, o); err != nil {
			return err
		}
	}
	checksum, err := w.finish()
	if err != nil {
		return err
	}
	return out.keep(w.all, checksum)
}

// packWriter writes a pack.
type packWriter struct {
	out    *bufio.Writer
	sum    hash.Hash
	crc    uint32 // of the current entry
	offset int64
	all    []written
	zip    *zlib.Writer
}

func newPackWriter(out io.Writer, count int) (*packWriter, error) {
	w := &packWriter{out: bufio.NewWriterSize(out, 128<<10), sum: newSum(), all: make([]written, 0, count)}
	var err error
	if w.zip, err = zlib.NewWriterLevel(io.Discard, zlib.BestSpeed); err != nil {
		return nil, err
	}
	head := [packHead]byte{'P', 'A', 'C', 'K', 0, 0, 0, 2}
	binary.BigEndian.PutUint32(head[8:], uint32(count))
	_, err = w.Write(head[:])
	return w, err
}

// Write implements io.Writer.
func (w *packWriter) Write(p []byte) (int, error) {
	w.sum.Write(p)
	w.crc = crc32.Update(w.crc, crc32.IEEETable, p)
	w.offset += int64(len(p))
	return w.out.Write(p)
}

// begin writes the header of an entry.
func (w *packWriter) begin(h plumbing.Hash, kind plumbing.ObjectType, size int64) error {
	w.all = append(w.all, written{hash: h, offset: w.offset})
	w.crc = 0
	b := byte(kind)<<4 | byte(size&15)
	var head []byte
	for size >>= 4; size > 0; size >>= 7 {
		head = append(head, b|0x80)
		b = byte(size & 0x7f)
	}
	_, err := w.Write(append(head, b))
	return err
}

func (w *packWriter) end() { w.all[len(w.all)-1].crc = w.crc }

// whole writes an object without a delta.
func (w *packWriter) whole(h plumbing.Hash, o plumbing.EncodedObject) error {
	if err := w.begin(h, o.Type(), o.Size()); err != nil {
		return err
	}
	in, err := o.Reader()
	if err != nil {
		return err
	}
	defer in.Close()
	w.zip.Reset(w)
	sum := newSum()
	io.WriteString(sum, prefix(o.Type(), o.Size()))
	if _, err := io.Copy(io.MultiWriter(w.zip, sum), in); err != nil {
		return err
	}
	var got plumbing.Hash
	if sum.Sum(got[:0]); got != h {
		return fmt.Errorf("object %s has another content: %w", h, zlib.ErrChecksum)
	}
	if err := w.zip.Close(); err != nil {
		return err
	}
	w.end()
	return nil
}

// copied writes an entry with its compressed bytes from another pack. base is the offset of
// a delta's base in this pack, and 0 for an object that is not a delta.
func (w *packWriter) copied(h plumbing.Hash, kind plumbing.ObjectType, size, base int64, compressed io.Reader) error {
	offset := w.offset
	if base > 0 {
		kind = offsetDelta
	}
	if err := w.begin(h, kind, size); err != nil {
		return err
	}
	if base > 0 {
		back := offset - base
		var digits [10]byte
		i := len(digits) - 1
		digits[i] = byte(back & 0x7f)
		for back >>= 7; back > 0; back >>= 7 {
			back--
			i--
			digits[i] = 0x80 | byte(back&0x7f)
		}
		if _, err := w.Write(digits[i:]); err != nil {
			return err
		}
	}
	if _, err := io.Copy(w, compressed); err != nil {
		return err
	}
	w.end()
	return nil
}

// finish writes the checksum of the pack, and returns it.
func (w *packWriter) finish() (checksum plumbing.Hash, err error) {
	w.sum.Sum(checksum[:0])
	if _, err := w.out.Write(checksum[:]); err != nil {
		return checksum, err
	}
	return checksum, w.out.Flush()
}
