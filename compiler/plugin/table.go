package plugin

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/filestamp"
)

const (
	// tableFormat is part of every key, so that tables of another format are not found.
	tableFormat = "7"
	// tablesMax bounds how many tables are kept: the oldest are removed.
	tablesMax = 100
	// tableSize bounds the size of a file that is read as a table.
	tableSize = 64 << 20
)

// table is the result of a load, and everything that the load depended on.
type table struct {
	Python      string // version
	Plugins     []json.RawMessage
	Dataclasses []eval.Dataclass
	Warnings    []remark
	Export      json.RawMessage     // the answer to export_types
	Code        map[string][]string // Python modules by resource type
	Finalizers  []string
	Shared      []string          // modules that cannot wait until they are used
	Early       []string          // modules that another one imports
	Salt        string            // of sealed values
	Variables   map[string]string // variables of the environment that were read, sealed; "": not set
	Environment string            // the whole environment, sealed, if the modules read all of it
	Files       []input
	Folders     []input

	signatures []*eval.Signature
}

// remark is a warning as the worker writes it.
type remark struct {
	Message string `json:"message"`
	File    string `json:"file"`
	Line    int32  `json:"line"`
}

// recorded is what the worker recorded of a load.
type recorded struct {
	Export     json.RawMessage     `json:"export"`
	Code       map[string][]string `json:"code"`
	Finalizers []string            `json:"finalizers"`
	Shared     []string            `json:"shared"`
	Early      []string            `json:"early"`
	Files      []string            `json:"files"`
	Folders    []string            `json:"folders"`
	// Variables are those of the environment that were read; nil when all were.
	Variables map[string]*string `json:"variables"`
	Problems  []string           `json:"problems"`
}

// loaded is what the engine needs to know of the load.
func (t *table) loaded() *eval.Loaded {
	out := &eval.Loaded{Plugins: t.signatures, Dataclasses: t.Dataclasses}
	for _, w := range t.Warnings {
		out.Warnings = append(out.Warnings, w.warning())
	}
	return out
}

func (w remark) warning() syntax.Warning {
	line := syntax.Pos{Line: w.Line, Col: 1}
	at := syntax.Span{File: &syntax.File{Path: w.File}, Start: line, End: line, Coarse: true}
	return syntax.Warning{Kind: "inmanta.warnings.InmantaWarning", Message: w.Message, At: at}
}

// parse makes signatures from the descriptions of the plug-ins.
func (t *table) parse() error {
	t.signatures = make([]*eval.Signature, len(t.Plugins))
	for i, raw := range t.Plugins {
		s := &signature{}
		if err := json.Unmarshal(raw, s); err != nil {
			return err
		}
		if s.Name == "" {
			return errors.New("a plug-in without a name")
		}
		t.signatures[i] = s.signature()
	}
	return nil
}

// seal hides a value of the environment: it may be a secret.
func (t *table) seal(text string) string {
	mac := hmac.New(sha256.New, []byte(t.Salt))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// holds reports whether everything that the load depended on is unchanged, and whether it
// renewed stamps of inputs.
func (t *table) holds(env []string) (holds, renewed bool) {
	if t.Environment != "" && t.Environment != t.seal(strings.Join(slices.Sorted(slices.Values(env)), "\x00")) {
		return false, false
	}
	if len(t.Variables) > 0 {
		now := variables(env)
		for name, sealed := range t.Variables {
			value, set := now[name]
			if set != (sealed != "") || set && t.seal(value) != sealed {
				return false, false
			}
		}
	}
	for _, inputs := range []struct {
		all    []input
		folder bool
	}{{t.Folders, true}, {t.Files, false}} {
		for n := range inputs.all {
			same, stamped := inputs.all[n].same(inputs.folder)
			if !same {
				return false, false
			}
			renewed = renewed || stamped
		}
	}
	return true, renewed
}

func variables(env []string) map[string]string {
	out := make(map[string]string, len(env))
	for _, each := range env {
		if name, value, ok := strings.Cut(each, "="); ok {
			out[name] = value
		}
	}
	return out
}

// newTable makes the table of a load that began at a time. It fails when the load must not be
// remembered.
func newTable(reply *loadReply, python string, env []string, began time.Time) (*table, error) {
	r := reply.Table
	switch {
	case r == nil:
		return nil, errors.New("nothing was recorded")
	case len(r.Problems) > 0:
		return nil, errors.New(strings.Join(r.Problems, "; "))
	case len(reply.Output) > 0:
		return nil, errors.New("the modules print when they are imported")
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	t := &table{
		Python: python, Plugins: reply.Plugins, Dataclasses: reply.Dataclasses, Warnings: reply.Warnings,
		Export: r.Export, Code: r.Code, Finalizers: r.Finalizers, Shared: r.Shared, Early: r.Early,
		Salt: hex.EncodeToString(salt), Variables: map[string]string{},
	}
	if err := t.parse(); err != nil {
		return nil, err
	}
	if r.Variables == nil {
		t.Environment = t.seal(strings.Join(slices.Sorted(slices.Values(env)), "\x00"))
	}
	for name, value := range r.Variables {
		t.Variables[name] = ""
		if value != nil {
			t.Variables[name] = t.seal(*value)
		}
	}
	for _, path := range r.Folders {
		i, err := newInput(path, true, began)
		if err != nil {
			return nil, err
		}
		t.Folders = append(t.Folders, i)
	}
	for _, path := range r.Files {
		i, err := newInput(path, false, began)
		if err != nil {
			return nil, err
		}
		t.Files = append(t.Files, i)
	}
	return t, nil
}

// tables is a folder with tables, and with the habit of each project.
type tables struct{ dir string }

func (s tables) path(key string) string { return filepath.Join(s.dir, key+".table") }

// read returns a table; nil when there is none, or it cannot be read.
func (s tables) read(key string) *table {
	text, err := readSealed(s.path(key))
	if err != nil {
		return nil
	}
	t := &table{}
	if json.Unmarshal(text, t) != nil || t.parse() != nil {
		return nil
	}
	return t
}

// write writes a table. When that fails the next compile merely takes longer.
func (s tables) write(key string, t *table) {
	if text, err := json.Marshal(t); err == nil && writeSealed(s.path(key), text) == nil {
		s.prune()
	}
}

func (s tables) forget(key string) { _ = os.Remove(s.path(key)) }

// prune removes the oldest of too many tables.
func (s tables) prune() {
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) <= 2*tablesMax {
		return
	}
	type aged struct {
		path string
		at   time.Time
	}
	var all []aged
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			all = append(all, aged{filepath.Join(s.dir, e.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b aged) int { return a.at.Compare(b.at) })
	for _, old := range all[:len(all)-min(len(all), tablesMax)] {
		_ = os.Remove(old.path)
	}
}

// errDamaged means that a file of the cache is not as it was written.
var errDamaged = errors.New("damaged")

// readSealed reads a file that writeSealed wrote, whole or not at all.
func readSealed(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > tableSize || !ownedHere(info, filepath.Dir(path)) {
		return nil, errDamaged
	}
	text, err := io.ReadAll(io.LimitReader(f, tableSize))
	if err != nil {
		return nil, err
	}
	sum, body, found := bytes.Cut(text, []byte("\n"))
	if !found || string(sum) != checksum(body) {
		return nil, errDamaged
	}
	return body, nil
}

// ownedHere reports whether a file in this folder belongs to this user. For root it may also be in
// the folder of another user and belong to that one: the compiles of a server run as users of their own.
func ownedHere(info os.FileInfo, dir string) bool {
	file, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if int(file.Uid) == os.Geteuid() {
		return true
	}
	of, err := os.Lstat(dir)
	if err != nil || os.Geteuid() != 0 {
		return false
	}
	folder, ok := of.Sys().(*syscall.Stat_t)
	return ok && folder.Uid == file.Uid
}

func writeSealed(path string, body []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = fmt.Fprintf(temp, "%s\n%s", checksum(body), body)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// key identifies a load by what is known before it: the worker, its settings, the modules and
// the installed packages. holds compares the content of files.
func (c Config) key(modules []moduleCode) (string, error) {
	real, err := filepath.EvalSymlinks(c.Python)
	if err != nil {
		return "", err
	}
	interpreter, err := filestamp.Of(real)
	if err != nil {
		return "", err
	}
	venv, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(c.Python)), "pyvenv.cfg"))
	var packages []string
	for _, dir := range c.Path {
		found, err := packagesIn(dir)
		if err != nil {
			return "", err
		}
		packages = append(packages, dir, found)
	}
	text, err := json.Marshal(map[string]any{
		"format": tableFormat, "runtime": filepath.Base(c.RuntimeDir), "packages": packages,
		"python": c.Python, "interpreter": real, "stamp": interpreter, "venv": venv,
		"dir": c.ProjectDir, "name": c.ProjectName, "modulepath": c.ModulePath,
		"metadata": c.Metadata, "settings": c.Settings, "modules": modules,
	})
	if err != nil {
		return "", err
	}
	return checksum(text)[:40], nil
}

// habit is what a project needed in its last compile. It only says what is worth preparing: no
// result depends on it.
type habit struct {
	Used []string // modules whose Python code was used
}

func (s tables) habitPath(project string) string {
	return filepath.Join(s.dir, checksum([]byte(project))[:40]+".habit")
}

// habit returns the habit of a project; nil when it is not known.
func (s tables) habit(project string) *habit {
	text, err := readSealed(s.habitPath(project))
	if err != nil {
		return nil
	}
	h := &habit{}
	if json.Unmarshal(text, h) != nil {
		return nil
	}
	return h
}

func (s tables) writeHabit(project string, h *habit) {
	if text, err := json.Marshal(h); err == nil {
		_ = writeSealed(s.habitPath(project), text)
	}
}
