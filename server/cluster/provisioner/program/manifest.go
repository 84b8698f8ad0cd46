package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// ManifestName is the file that makes a folder a plug-in.
const ManifestName = "plugin.json"

// Protocol is the version of what programs and provisioners say to each other.
const Protocol = 1

// manifestMax is the size of the largest manifest.
const manifestMax = 1 << 20

// Manifest says what a program is. It has the form of Coopr's plug-ins, with the program added.
type Manifest struct {
	Name           string   `json:"name"`
	Description    string   `json:"description"`
	Protocol       int      `json:"protocol"`
	Program        string   `json:"program"` // relative to the folder
	ProviderTypes  []string `json:"providertypes"`
	AutomatorTypes []string `json:"automatortypes"`
	// Types are the definitions of the types, by name, as the catalogue has them.
	Types map[string]json.RawMessage `json:"-"`
}

// Found is what Load finds.
type Found struct {
	Providers  map[string]plugin.Provider // by type
	Automators map[string]plugin.Automator
	Programs   []*Program
}

// Load finds the plug-ins in the folders of a folder. A plug-in that cannot be used is left out, and is one of the
// problems; a type that two plug-ins have belongs to the first of them by name.
func Load(c Config) (_ Found, problems []error, err error) {
	found := Found{Providers: map[string]plugin.Provider{}, Automators: map[string]plugin.Automator{}}
	folders, err := os.ReadDir(c.Folder)
	if err != nil {
		return found, nil, fault.Disk("program.Load", c.Folder, err)
	}
	for _, folder := range folders {
		dir := filepath.Join(c.Folder, folder.Name())
		if _, err := os.Stat(filepath.Join(dir, ManifestName)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		p, err := Open(c, dir)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		found.Programs = append(found.Programs, p)
		problems = append(problems, found.add(p)...)
	}
	return found, problems, nil
}

// add adds the types of a program.
func (f *Found) add(p *Program) (problems []error) {
	twice := func(kind, name string) {
		problems = append(problems, fault.New("program.Load", fault.Conflict,
			fmt.Sprintf("the plug-in in %s has the %s type %q, which another one has already", p.dir, kind, name)))
	}
	for _, name := range p.Manifest.ProviderTypes {
		if _, ok := f.Providers[name]; ok {
			twice("provider", name)
			continue
		}
		f.Providers[name] = p
	}
	for _, name := range p.Manifest.AutomatorTypes {
		if _, ok := f.Automators[name]; ok {
			twice("automator", name)
			continue
		}
		f.Automators[name] = p
	}
	return problems
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Open reads the plug-in in a folder.
func Open(c Config, dir string) (*Program, error) {
	path := filepath.Join(dir, ManifestName)
	bad := func(text string) error {
		return fault.New("program.Open", fault.Invalid, fmt.Sprintf("the plug-in %s cannot be used: %s", path, text)).
			Hint("docs/plugins.md says what a manifest has")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault.Disk("program.Open", dir, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Disk("program.Open", path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, manifestMax+1))
	if err != nil {
		return nil, fault.Disk("program.Open", path, err)
	}
	if len(text) > manifestMax {
		return nil, bad("the manifest is too large")
	}
	p := &Program{c: c, dir: dir}
	m := &p.Manifest
	if err := json.Unmarshal(text, m); err != nil {
		return nil, bad(err.Error())
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, bad(err.Error())
	}
	if !namePattern.MatchString(m.Name) {
		return nil, bad(fmt.Sprintf("%q cannot be its name", m.Name))
	}
	if m.Protocol != Protocol {
		return nil, bad(
			fmt.Sprintf("it speaks version %d of the protocol, and this provisioner speaks %d", m.Protocol, Protocol),
		)
	}
	if len(m.ProviderTypes)+len(m.AutomatorTypes) == 0 {
		return nil, bad("it has neither provider types nor automator types")
	}
	m.Types = map[string]json.RawMessage{}
	for _, name := range append(append([]string{}, m.ProviderTypes...), m.AutomatorTypes...) {
		if !namePattern.MatchString(name) {
			return nil, bad(fmt.Sprintf("%q cannot be the name of a type", name))
		}
		if definition, ok := whole[name]; ok {
			m.Types[name] = definition
		}
	}
	if !filepath.IsLocal(m.Program) {
		return nil, bad("its program is not a path in its folder")
	}
	p.path = filepath.Join(dir, m.Program)
	info, err := os.Stat(p.path)
	if err != nil {
		return nil, fault.Disk("program.Open", p.path, err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return nil, bad("its program is not a file that can be run; use chmod +x")
	}
	if info.Mode()&0o002 != 0 {
		return nil, bad("everybody can change its program; use chmod o-w")
	}
	return p, nil
}
