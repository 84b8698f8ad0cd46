package objects

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrDamaged means that the repository is damaged.
var ErrDamaged = errors.New("the object store is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// index is the index of a pack, in version 2: the sorted hashes, then a checksum and an
// offset for each. It stays on the disk, except for the fan-out table.
type index struct {
	file     *os.File
	fan      [257]int64 // fan[b] hashes begin with less than b
	large    int64      // how many offsets need 64 bits
	checksum plumbing.Hash
}

const (
	hashSize   = 20
	indexHead  = 8 + 256*4
	indexTail  = 2 * hashSize
	indexEntry = hashSize + 4 + 4
)

var indexMagic = []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}

func openIndex(path string) (*index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	x := &index{file: f}
	if err := x.readHead(); err != nil {
		f.Close()
		return nil, err
	}
	return x, nil
}

func (x *index) readHead() error {
	info, err := x.file.Stat()
	if err != nil {
		return err
	}
	var head [indexHead]byte
	if _, err := x.file.ReadAt(head[:], 0); err != nil {
		return damaged("%s is cut off: %w", info.Name(), err)
	}
	if !bytes.Equal(head[:8], indexMagic) {
		return damaged("%s is not the index of a pack", info.Name())
	}
	for b := range 256 {
		x.fan[b+1] = int64(binary.BigEndian.Uint32(head[8+4*b:]))
		if x.fan[b+1] < x.fan[b] {
			return damaged("the fan-out table of %s is not sorted", info.Name())
		}
	}
	room := info.Size() - indexHead - indexTail - x.count()*indexEntry
	if x.large = room / 8; room < 0 || room%8 != 0 || x.large > x.count() {
		return damaged("%s has %d bytes, which cannot be for %d objects", info.Name(), info.Size(), x.count())
	}
	_, err = x.file.ReadAt(x.checksum[:], info.Size()-indexTail)
	return err
}

func (x *index) count() int64 { return x.fan[256] }
func (x *index) close()       { x.file.Close() }

// window is how many hashes are read at once. Hashes are distributed evenly, so we can
// guess where one is; the window is so large that it is nearly always in it.
const window = 128

// find returns the offset of an object in the pack.
func (x *index) find(h plumbing.Hash) (offset int64, ok bool, err error) {
	low, high := x.fan[h[0]], x.fan[int(h[0])+1]
	guess := low + int64(uint64(binary.BigEndian.Uint32(h[1:5]))*uint64(high-low)>>32)
	var buf [window * hashSize]byte
	for low < high {
		from := max(low, guess-window/2)
		n := int(min(window, high-from))
		names := buf[:n*hashSize]
		if _, err := x.file.ReadAt(names, indexHead+from*hashSize); err != nil {
			return 0, false, damaged("an index of a pack cannot be read: %w", err)
		}
		switch {
		case bytes.Compare(h[:], names[:hashSize]) < 0:
			high = from
		case bytes.Compare(h[:], names[(n-1)*hashSize:]) > 0:
			low = from + int64(n)
		default:
			i := sort.Search(n, func(i int) bool { return bytes.Compare(names[i*hashSize:(i+1)*hashSize], h[:]) >= 0 })
			if !bytes.Equal(names[i*hashSize:(i+1)*hashSize], h[:]) {
				return 0, false, nil
			}
			offset, err = x.offset(from + int64(i))
			return offset, err == nil, err
		}
		guess = (low + high) / 2
	}
	return 0, false, nil
}

// offset returns the offset of the i-th object.
func (x *index) offset(i int64) (int64, error) {
	var b [8]byte
	if _, err := x.file.ReadAt(b[:4], indexHead+x.count()*(hashSize+4)+i*4); err != nil {
		return 0, damaged("an index of a pack cannot be read: %w", err)
	}
	offset := int64(binary.BigEndian.Uint32(b[:4]))
	if offset < 1<<31 {
		return offset, nil
	}
	if offset -= 1 << 31; offset >= x.large {
		return 0, damaged("an index of a pack names an offset that it does not have")
	}
	if _, err := x.file.ReadAt(b[:], indexHead+x.count()*indexEntry+offset*8); err != nil {
		return 0, damaged("an index of a pack cannot be read: %w", err)
	}
	return int64(binary.BigEndian.Uint64(b[:]) &^ (1 << 63)), nil
}

// each calls visit with the hashes of all objects from the i-th on, until visit returns false.
func (x *index) each(i int64, visit func(i int64, h plumbing.Hash) (more bool, err error)) error {
	names := bufio.NewReaderSize(io.NewSectionReader(x.file, indexHead+i*hashSize, (x.count()-i)*hashSize), 32<<10)
	for ; i < x.count(); i++ {
		var h plumbing.Hash
		if _, err := io.ReadFull(names, h[:]); err != nil {
			return damaged("an index of a pack cannot be read: %w", err)
		}
		if more, err := visit(i, h); err != nil || !more {
			return err
		}
	}
	return nil
}

// written is an object in a pack that is being made.
type written struct {
	hash   plumbing.Hash
	offset int64
	crc    uint32
}

// writeIndex sorts the objects of a pack, and writes its index.
func writeIndex(out io.Writer, all []written, checksum plumbing.Hash) error {
	sort.Slice(all, func(i, j int) bool { return bytes.Compare(all[i].hash[:], all[j].hash[:]) < 0 })
	sum := newSum()
	buffer := bufio.NewWriterSize(io.MultiWriter(out, sum), 64<<10)
	number := func(n uint32) {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], n)
		buffer.Write(b[:]) // Flush returns the first error
	}
	buffer.Write(indexMagic)
	n := 0
	for b := range 256 {
		for n < len(all) && int(all[n].hash[0]) <= b {
			n++
		}
		number(uint32(n))
	}
	for i := range all {
		buffer.Write(all[i].hash[:])
	}
	for i := range all {
		number(all[i].crc)
	}
	var large []int64
	for i := range all {
		if all[i].offset < 1<<31 {
			number(uint32(all[i].offset))
			continue
		}
		number(1<<31 | uint32(len(large)))
		large = append(large, all[i].offset)
	}
	for _, offset := range large {
		number(uint32(offset >> 32))
		number(uint32(offset))
	}
	buffer.Write(checksum[:])
	if err := buffer.Flush(); err != nil {
		return err
	}
	_, err := out.Write(sum.Sum(nil))
	return err
}
