package venv

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/filestamp"
)

// record is what the Maker knows of an environment that it made. It lies outside of the
// environment, where the environment's code cannot write.
type record struct {
	Dir       string            `json:"dir"`
	Spec      string            `json:"spec"`
	Installed map[string]string `json:"installed"`
	Pins      []string          `json:"pins,omitempty"` // with which the same packages come from wheels again
	// Quick is the digest of the names and stamps of all files. As long as it stays the
	// same, no file needs to be read.
	Quick string `json:"quick"`
	// Settled is false if a file changed so shortly before its stamp was taken that a
	// further change may have left the stamp as it was.
	Settled bool `json:"settled"`
}

// entry is a file or symbolic link of an environment.
type entry struct {
	path  string // below the environment
	stamp filestamp.Stamp
	mode  fs.FileMode
	sum   string // SHA-256 of the content or, for a link, its target
}

// tick is longer than the steps of the clock that file systems take times from.
const tick = 50 * time.Millisecond

// recordFile returns the path of the record of an environment. The list of its files is
// beside it.
func (m *Maker) recordFile(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(m.c.Records, hex.EncodeToString(sum[:16])+".json")
}

func (m *Maker) readRecord(dir string) (record, bool) {
	var r record
	text, err := os.ReadFile(m.recordFile(dir))
	return r, err == nil && json.Unmarshal(text, &r) == nil
}

// writeRecord stores a record and, unless files is nil, the list of files.
func (m *Maker) writeRecord(dir string, r record, files []entry) error {
	path := m.recordFile(dir)
	if files != nil {
		var list strings.Builder
		for _, f := range files {
			fmt.Fprintf(&list, "%o %s %q\n", uint32(f.mode), f.sum, f.path)
		}
		if err := writeWhole(path+".files", []byte(list.String())); err != nil {
			return err
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeWhole(path, text)
}

// forgetRecord deletes the record of an environment that is gone.
func (m *Maker) forgetRecord(dir string) {
	_ = os.Remove(m.recordFile(dir))
	_ = os.Remove(m.recordFile(dir) + ".files")
}

// pruneRecords deletes the records of environments that are gone.
func (m *Maker) pruneRecords() {
	files, _ := filepath.Glob(filepath.Join(m.c.Records, "*.json"))
	for _, file := range files {
		var r record
		if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &r) != nil {
			continue
		}
		if _, err := os.Lstat(r.Dir); errors.Is(err, fs.ErrNotExist) {
			m.forgetRecord(r.Dir)
		}
	}
}

// writeWhole writes a file that is complete or absent.
func writeWhole(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// readFiles reads the list of files by path.
func (m *Maker) readFiles(dir string) (map[string]entry, error) {
	f, err := os.Open(m.recordFile(dir) + ".files")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]entry{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		mode, rest, _ := strings.Cut(lines.Text(), " ")
		sum, quoted, _ := strings.Cut(rest, " ")
		bits, err := strconv.ParseUint(mode, 8, 32)
		if err != nil {
			return nil, err
		}
		path, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		out[path] = entry{path: path, mode: fs.FileMode(bits), sum: sum}
	}
	return out, lines.Err()
}

// survey lists the files of an environment with their stamps, sorted by path. It does
// not read them. The marker, which is touched at each use, is left out.
func survey(dir string) ([]entry, error) {
	var out []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if below := path[len(dir)+1:]; below != markerName {
			out = append(out, entry{path: below})
		}
		return nil
	})
	var all sync.WaitGroup
	workers := min(runtime.NumCPU(), 4)
	failed := make([]error, workers)
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(out); i += workers {
				f := &out[i]
				var statErr error
				f.stamp, f.mode, statErr = filestamp.OfLink(filepath.Join(dir, f.path))
				failed[w] = errors.Join(failed[w], statErr)
			}
		})
	}
	all.Wait()
	return out, errors.Join(err, errors.Join(failed...))
}

// quickDigest returns the digest of names and stamps, and whether the stamps can be
// trusted: no file changed just before now.
func quickDigest(files []entry, now time.Time) (digest string, settled bool) {
	h := sha256.New()
	settled = true
	var line []byte
	for _, f := range files {
		line = append(line[:0], f.path...)
		line = append(line, 0)
		for _, n := range f.stamp {
			line = strconv.AppendInt(line, n, 16)
			line = append(line, ' ')
		}
		line = strconv.AppendUint(line, uint64(f.mode), 8)
		line = append(line, '\n')
		_, _ = h.Write(line)
		settled = settled && now.Sub(f.stamp.Changed()) > tick
	}
	return hex.EncodeToString(h.Sum(nil)), settled
}

// hashAll reads the files and fills in their sums. A file that cannot be read gets none.
func hashAll(dir string, files []entry) {
	var all sync.WaitGroup
	workers := min(runtime.NumCPU(), 8)
	for w := range workers {
		all.Go(func() {
			buffer := make([]byte, 128<<10)
			for i := w; i < len(files); i += workers {
				files[i].sum = sumOf(filepath.Join(dir, files[i].path), files[i].mode, buffer)
			}
		})
	}
	all.Wait()
}

// sumOf returns the SHA-256 of the content of a file or of the target of a link. It is
// empty if there is neither.
func sumOf(path string, mode fs.FileMode, buffer []byte) string {
	h := sha256.New()
	switch {
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return ""
		}
		_, _ = io.WriteString(h, target)
	case mode.IsRegular():
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return ""
		}
		defer f.Close()
		if _, err := io.CopyBuffer(onlyWriter{h}, f, buffer); err != nil {
			return ""
		}
	default:
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// onlyWriter hides other methods of a writer, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

// damage is what differs between an environment and its record.
type damage struct {
	changed, missing, added []string
	unknown                 bool // there is no usable record
}

func (d damage) none() bool { return !d.unknown && len(d.changed)+len(d.missing)+len(d.added) == 0 }

// onlyAdded reports whether deleting files mends the damage.
func (d damage) onlyAdded() bool {
	return !d.unknown && len(d.changed)+len(d.missing) == 0 && len(d.added) > 0
}

// String says what is damaged, with the name of one file.
func (d damage) String() string {
	if d.unknown {
		return "it is not known which files belong to it"
	}
	var all []string
	for _, kind := range []struct {
		files []string
		said  string
	}{{d.changed, "changed"}, {d.missing, "missing"}, {d.added, "added by something else"}} {
		switch n := len(kind.files); n {
		case 0:
		case 1:
			all = append(all, kind.files[0]+" was "+kind.said)
		default:
			all = append(all, fmt.Sprintf("%d files were %s, %s among them", n, kind.said, kind.files[0]))
		}
	}
	return strings.ReplaceAll(strings.Join(all, "; "), " was missing", " is missing")
}

// verify compares an environment with its record. It reads only files whose stamp changed.
func (m *Maker) verify(dir string, r record) damage {
	now := time.Now()
	files, err := survey(dir)
	if err != nil {
		return damage{unknown: true}
	}
	quick, settled := quickDigest(files, now)
	if quick == r.Quick && r.Settled {
		return damage{}
	}
	known, err := m.readFiles(dir)
	if err != nil {
		return damage{unknown: true}
	}
	hashAll(dir, files)
	var d damage
	for _, f := range files {
		was, ok := known[f.path]
		switch {
		case !ok:
			d.added = append(d.added, f.path)
		case was.sum != f.sum || was.mode != f.mode:
			d.changed = append(d.changed, f.path)
		}
		delete(known, f.path)
	}
	for path := range known {
		d.missing = append(d.missing, path)
	}
	slices.Sort(d.missing)
	if d.none() { // only times changed: the next look need not read the files again
		r.Quick, r.Settled = quick, settled
		_ = m.writeRecord(dir, r, nil) // if that fails, the next look takes longer
	}
	return d
}
