package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/runtime"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/server/agent/protocol"
)

const (
	// parcelAge is the time after which the record is asked again whether it still has the contents of a blueprint.
	parcelAge = 10 * time.Minute
	// parcelUnused is the time after which a blueprint is forgotten that no task used.
	parcelUnused = time.Hour
	// failedPause is how long packages that cannot be fetched are not tried again.
	failedPause = time.Minute
	// foldersInterval is how often unused packages are looked for.
	foldersInterval = 10 * time.Minute
)

// parcel is what an agent needs for a blueprint.
type parcel struct {
	key       string
	blueprint protocol.Blueprint
	needs     []string // content hashes

	packing sync.Mutex // held by the one task that packs it; the fields below are guarded by it
	packed  time.Time
	err     error // why packing failed last, at packed

	used time.Time // guarded by parcels.mu
}

// parcels makes parcels and remembers them. The contents are in the record.
type parcels struct {
	c       Config
	mu      sync.Mutex
	known   map[string]*parcel
	sources map[string]string // SHA-256 of a source by its SHA-1
	cleaned time.Time         // when unused packages were looked for last; for clean alone
}

// get returns the parcel of a blueprint for a machine, with all its contents in the record.
func (s *parcels) get(ctx context.Context, b intent.Blueprint, machine intent.RemoteMachine) (*parcel, error) {
	python, err := choosePython(b.PythonVersion, machine)
	if err != nil {
		return nil, err
	}
	platform := venv.Platform{Python: python, Arch: machine.Arch, Libc: machine.Libc}
	key := fmt.Sprint(b.Hash(), platform)
	s.mu.Lock()
	p := s.known[key]
	if p == nil {
		p = &parcel{key: key}
		s.known[key] = p
	}
	p.used = time.Now()
	s.mu.Unlock()
	p.packing.Lock()
	defer p.packing.Unlock()
	switch age := time.Since(p.packed); {
	case p.packed.IsZero():
	case p.err != nil && age < failedPause:
		return nil, p.err
	case p.err == nil && age < parcelAge:
		return p, nil
	}
	p.err = s.pack(ctx, p, b, platform)
	if ctx.Err() != nil {
		return nil, ctx.Err() // that says nothing about the parcel
	}
	p.packed = time.Now()
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

// choosePython returns the version that handlers run with: the server's, if the agent has it.
func choosePython(wanted string, machine intent.RemoteMachine) (string, error) {
	if slices.Contains(machine.Pythons, wanted) {
		return wanted, nil
	}
	if len(machine.Pythons) > 0 {
		return machine.Pythons[0], nil
	}
	return "", fault.New("remote.pack", fault.Unavailable, "the machine of the remote agent has no usable Python").
		Hint("install Python 3.11 or newer there")
}

// forget makes the next task look at the contents of a parcel again.
func (s *parcels) forget(p *parcel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, p.key)
}

// clean forgets parcels that no task used for long, and removes packages that none was packed from for long. One
// goroutine calls it on a timer.
func (s *parcels) clean(now time.Time) {
	s.mu.Lock()
	for key, p := range s.known {
		if now.Sub(p.used) > parcelUnused {
			delete(s.known, key)
		}
	}
	s.mu.Unlock()
	if now.Sub(s.cleaned) < foldersInterval {
		return
	}
	s.cleaned = now
	dir := s.c.Layout.Environment(s.c.Environment).WheelFolders()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there are none
	}
	// wheels touches a folder before it is read. What a server that was killed had not finished, ".new-", is as old.
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) < cmp.Or(s.c.WheelRetention, time.Hour) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			s.c.Logger.Warn("packages for remote agents cannot be removed", "error", err)
		}
	}
}

// pack puts the contents of a blueprint into the record, and describes it.
func (s *parcels) pack(ctx context.Context, p *parcel, b intent.Blueprint, platform venv.Platform) error {
	archive, archiveHash := runtime.Archive()
	out := protocol.Blueprint{
		Python: platform.Python, Modules: map[string]string{}, Files: map[string]string{}, Wheels: []protocol.Wheel{},
		Runtime: archiveHash,
	}
	read := map[string]func() ([]byte, error){archiveHash: func() ([]byte, error) { return archive, nil }}
	for _, f := range b.Sources {
		hash, err := s.source(ctx, f)
		if err != nil {
			return err
		}
		out.Modules[f.Module], out.Files[f.Path] = f.Path, hash
		read[hash] = func() ([]byte, error) { return s.c.Files.File(ctx, f.Hash) }
	}
	for _, module := range b.Modules {
		out.Modules[module] = ""
	}
	wheels, err := s.wheels(ctx, b, platform)
	if err != nil {
		return err
	}
	for _, w := range wheels {
		out.Wheels = append(out.Wheels, protocol.Wheel{Name: w.Name, Hash: w.Hash})
		read[w.Hash] = func() ([]byte, error) { return os.ReadFile(w.Path) }
	}
	var needs []string
	for hash := range read {
		needs = append(needs, hash)
	}
	slices.Sort(needs)
	lacking, err := s.c.Record.Lacking(ctx, needs)
	if err != nil {
		return err
	}
	for _, hash := range lacking {
		content, err := read[hash]()
		if err != nil {
			return err
		}
		put, err := s.c.Record.PutContent(ctx, content)
		if err != nil {
			return err
		}
		if put != hash {
			return fault.New("remote.pack", fault.Internal, "a content for remote agents changed while it was read")
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	out.Hash = hex.EncodeToString(sum[:20])
	p.blueprint, p.needs = out, needs
	return nil
}

// source returns the SHA-256 of a handler's source.
func (s *parcels) source(ctx context.Context, f intent.SourceFile) (string, error) {
	s.mu.Lock()
	known, ok := s.sources[f.Hash]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	content, err := s.c.Files.File(ctx, f.Hash)
	if err != nil {
		return "", fmt.Errorf("the source of handler module %s: %w", f.Module, err)
	}
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources[f.Hash] = hash
	return hash, nil
}

// wheels returns the packages of a blueprint. They are fetched once for all blueprints with the same requirements.
func (s *parcels) wheels(ctx context.Context, b intent.Blueprint, platform venv.Platform) ([]venv.Wheel, error) {
	if len(b.Requirements) == 0 {
		return nil, nil
	}
	b.Sources, b.PythonVersion, b.Libc = nil, platform.Python, platform.Arch+" "+platform.Libc
	folder := s.c.Layout.Environment(s.c.Environment).Wheels(b.VenvHash())
	if wheels, ok := readWheels(folder); ok {
		now := time.Now()
		_ = os.Chtimes(folder, now, now)
		return wheels, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o750); err != nil {
		return nil, fault.Disk("remote.wheels", folder, err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(folder), filepath.Base(folder)+".new-*")
	if err != nil {
		return nil, fault.Disk("remote.wheels", folder, err)
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, "wheels")
	s.c.Logger.Info("fetching the packages of a blueprint for remote agents", "python", platform.Python,
		"arch", platform.Arch, "libc", platform.Libc)
	_, steps, err := s.c.Maker.Fetch(ctx, venv.Spec{
		Dir: fresh, Owner: s.c.Environment.String(), Requirements: b.Requirements, Constraints: b.Constraints,
		Pip: b.Pip,
	}, platform)
	for _, step := range steps {
		s.c.Logger.Info("ran a command", "command", step.Command, "code", step.ReturnCode,
			"took", step.Completed.Sub(step.Started), "output", step.Output+step.ErrOutput)
	}
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(folder); err != nil {
		return nil, fault.Disk("remote.wheels", folder, err)
	}
	if err := os.Rename(fresh, folder); err != nil {
		return nil, fault.Disk("remote.wheels", folder, err)
	}
	now := time.Now()
	_ = os.Chtimes(folder, now, now) // the time of the packages may be that of their makers
	wheels, ok := readWheels(folder)
	if !ok {
		return nil, fault.Disk("remote.wheels", folder, errors.New("the packages cannot be read back"))
	}
	return wheels, nil
}

// readWheels lists the wheels of a complete folder.
func readWheels(folder string) ([]venv.Wheel, bool) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, false
	}
	var out []venv.Wheel
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, false
		}
		sum := sha256.Sum256(content)
		out = append(out, venv.Wheel{Name: e.Name(), Path: path, Hash: hex.EncodeToString(sum[:])})
	}
	return out, true
}
