package gitsync

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// entry is a file in the index of a checkout, which is written in version 2 of Git's
// format. We read and write it ourselves: go-git takes a tenth of a second for an
// index of 20,000 files, twice at every push.
type entry struct {
	name              string
	mode              filemode.FileMode
	hash              plumbing.Hash
	created, modified moment
	dev, inode        uint32
	uid, gid          uint32
	size              uint32
}

// moment is a time in an index.
type moment struct{ seconds, nanoseconds uint32 }

func momentOf(t time.Time) moment { return moment{uint32(t.Unix()), uint32(t.Nanosecond())} }

func (m moment) before(t time.Time) bool {
	return time.Unix(int64(m.seconds), int64(m.nanoseconds)).Before(t)
}

const (
	indexMagic  = "DIRC\x00\x00\x00\x02" // the signature and the version
	indexHeader = 12
	entryFixed  = 62 // bytes of an entry before its name
	longName    = 0xfff
)

// readIndex returns the entries of an index by path, and when it was written. It
// returns nothing when the index cannot be read or has another version; then all
// files are compared by content.
func readIndex(path string) (map[string]*entry, time.Time) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, time.Time{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, time.Time{}
	}
	list, ok := decodeIndex(text)
	if !ok {
		return nil, time.Time{}
	}
	entries := make(map[string]*entry, len(list))
	for i := range list {
		entries[list[i].name] = &list[i]
	}
	return entries, info.ModTime()
}

// decodeIndex returns the entries of an index, without those of conflicts. It ignores extensions.
func decodeIndex(text []byte) ([]entry, bool) {
	end := len(text) - sha1.Size
	if end < indexHeader || string(text[:len(indexMagic)]) != indexMagic {
		return nil, false
	}
	if sum := sha1.Sum(text[:end]); !bytes.Equal(sum[:], text[end:]) {
		return nil, false
	}
	number := binary.BigEndian.Uint32(text[8:])
	names := string(text[:end])
	at := indexHeader
	if uint64(number)*(entryFixed+2) > uint64(end) { // there is no room for that many
		return nil, false
	}
	list := make([]entry, 0, number)
	for range number {
		if end-at < entryFixed+2 {
			return nil, false
		}
		word := func(n int) uint32 { return binary.BigEndian.Uint32(text[at+4*n:]) }
		e := entry{
			created: moment{word(0), word(1)}, modified: moment{word(2), word(3)}, dev: word(4), inode: word(5),
			mode: filemode.FileMode(word(6)), uid: word(7), gid: word(8), size: word(9),
			hash: plumbing.Hash(text[at+40 : at+60]),
		}
		flags := binary.BigEndian.Uint16(text[at+60:])
		from := at + entryFixed
		length := strings.IndexByte(names[from:], 0)
		if length < 1 || min(length, longName) != int(flags&longName) {
			return nil, false
		}
		e.name = names[from : from+length]
		if at += entryLength(length); at > end {
			return nil, false
		}
		if flags>>12&3 == 0 { // no conflict
			list = append(list, e)
		}
	}
	return list, true
}

// entryLength is the length of an entry with the zero bytes after its name, of which there is at least one.
func entryLength(name int) int { return (entryFixed + name + 8) / 8 * 8 }

// encodeIndex sorts the entries and returns the index file.
func encodeIndex(list []entry) []byte {
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	size := indexHeader + sha1.Size
	for i := range list {
		size += entryLength(len(list[i].name))
	}
	text := make([]byte, 0, size)
	text = append(text, indexMagic...)
	text = binary.BigEndian.AppendUint32(text, uint32(len(list)))
	for i := range list {
		e, start := &list[i], len(text)
		for _, word := range [...]uint32{
			e.created.seconds, e.created.nanoseconds, e.modified.seconds, e.modified.nanoseconds,
			e.dev, e.inode, uint32(e.mode), e.uid, e.gid, e.size,
		} {
			text = binary.BigEndian.AppendUint32(text, word)
		}
		text = append(text, e.hash[:]...)
		text = binary.BigEndian.AppendUint16(text, uint16(min(len(e.name), longName)))
		text = append(text, e.name...)
		text = append(text, make([]byte, entryLength(len(e.name))-(len(text)-start))...)
	}
	sum := sha1.Sum(text)
	return append(text, sum[:]...)
}

// untouched reports whether a file has not changed since its entry was made. A file
// that was changed within the clock tick in which the index was written looks
// unchanged; so files of that tick do not count as untouched.
func untouched(old *entry, info fs.FileInfo, indexWritten time.Time) bool {
	now := entryOf(info)
	return old.size == now.size && old.inode == now.inode && old.dev == now.dev &&
		old.modified == now.modified && now.modified.before(indexWritten) &&
		old.created == now.created && now.created.before(indexWritten)
}
