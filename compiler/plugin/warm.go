package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"ordain.dev/ordain/internal/filestamp"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/worker"
)

// Warm is a template that a compile may copy instead of starting a worker.
type Warm struct {
	Handover *os.File
	Key      string // of the recipe that made it
}

// Recipe says how to make a template for compiles like the one that returned it.
type Recipe struct {
	// Key identifies the content of everything that the imports of the template read. A
	// template with another key is of no use.
	Key string `json:"key"`

	Python     string                    `json:"python"`
	RuntimeDir string                    `json:"runtime_dir"`
	Path       []string                  `json:"path"`
	Dir        string                    `json:"dir"`
	CacheDir   string                    `json:"cache_dir"`
	Table      string                    `json:"table"`
	Settings   map[string]map[string]any `json:"settings"`
	Load       json.RawMessage           `json:"load"`

	// Lost: the compile was given a template with this key but could not copy it.
	Lost bool `json:"lost,omitempty"`
}

// Recipe returns how to make a template for the next compile; nil when a template would be of no
// use or that is not known. The host must be closed.
func (h *Host) Recipe() *Recipe {
	if h.key == "" || h.kept == nil || len(h.used) == 0 {
		return nil
	}
	request := h.lazyRequest(h.kept, sortedKeys(h.used))
	load, err := json.Marshal(request)
	if err != nil {
		return nil
	}
	c := h.config
	return &Recipe{
		Key: h.kept.fingerprint(h.key), Python: c.Python, RuntimeDir: c.RuntimeDir, Path: c.Path, Dir: c.ProjectDir,
		CacheDir: c.CacheDir, Table: h.key, Settings: c.Settings, Load: load,
		Lost: h.adopts && h.began && !h.adopted,
	}
}

// fingerprint identifies the content of everything that a table depends on.
func (t *table) fingerprint(key string) string {
	type content struct{ Path, Hash string }
	var inputs []content
	for _, each := range t.Folders {
		inputs = append(inputs, content{each.Path, each.Hash})
	}
	for _, each := range t.Files {
		inputs = append(inputs, content{each.Path, each.Hash})
	}
	text, err := json.Marshal(struct {
		Key, Salt, Environment string
		Variables              map[string]string
		Shared, Early          []string
		Inputs                 []content
	}{key, t.Salt, t.Environment, t.Variables, t.Shared, t.Early, inputs})
	if err != nil {
		return ""
	}
	return checksum(text)[:40]
}

// Template is a worker that waits to be copied.
type Template struct {
	dialogue worker.Dialogue
	handover *os.File
}

// Reasons why a template cannot be made.
var (
	errMoved = errors.New("the modules are not what they were")
	// ErrTouched means that files were touched while they were imported, though their content is
	// unchanged. Virtual environments share the files of packages, and making or removing one
	// touches them. A second try may succeed.
	ErrTouched = errors.New("the modules were touched while they were imported")
)

// slack allows for a clock of the file system that is coarser than ours.
const slack = 50 * time.Millisecond

// NewTemplate starts a worker and has it import what the recipe says. It fails when a copy of it
// would differ from a new worker; the error says why. ctx is for the preparation only: the
// template ends with Close, or with this process. confine may be nil; see worker.Config, as for ended.
func NewTemplate(
	ctx context.Context,
	r *Recipe,
	env []string,
	confine func(*exec.Cmd) (started func() (*isolation.Space, error), err error),
	ended func(),
) (*Template, error) {
	theirs, ours, err := worker.HandoverPair()
	if err != nil {
		return nil, err
	}
	began := time.Now().Add(-slack)
	dialogue, err := worker.StartDialogue(ctx, worker.Config{
		Python: r.Python, Role: "template", RuntimeDir: r.RuntimeDir, Path: r.Path, Dir: r.Dir, Env: env,
		Handover: theirs, Confine: confine, Ended: ended,
	})
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	t := &Template{dialogue: dialogue, handover: ours}
	var reply struct {
		Problems []string `json:"problems"`
	}
	err = dialogue.Ask(ctx, "prepare", map[string]any{"settings": r.Settings, "load": r.Load}, &reply, nil)
	switch {
	case err != nil:
	case len(reply.Problems) > 0:
		err = errors.New(reply.Problems[0])
	default:
		err = r.unchanged(env, began)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// unchanged returns an error unless everything that a template has read since a time is what its key
// says.
func (r *Recipe) unchanged(env []string, since time.Time) error {
	t := tables{filepath.Join(r.CacheDir, "plugins")}.read(r.Table)
	if t == nil || t.fingerprint(r.Table) != r.Key {
		return errMoved
	}
	if holds, _ := t.holds(env); !holds {
		return errMoved
	}
	for _, each := range t.Files {
		if s, err := filestamp.Of(each.Path); err != nil || s != (filestamp.Stamp{}) && !s.Changed().Before(since) {
			return ErrTouched
		}
	}
	return nil
}

// Handover is the socket over which compiles ask for copies.
func (t *Template) Handover() *os.File { return t.handover }

// Done is closed when the template has ended.
func (t *Template) Done() <-chan struct{} { return t.dialogue.Done() }

// RSS is the resident memory of the template in bytes.
func (t *Template) RSS() int64 { return t.dialogue.RSS() }

// EndOthers kills what copies have left running, and copies that still run.
func (t *Template) EndOthers() { t.dialogue.EndOthers() }

// Close ends the template. Copies of it go on, unless it is confined.
func (t *Template) Close() {
	_ = t.handover.Close()
	_ = t.dialogue.Close(time.Second)
}
