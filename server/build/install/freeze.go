package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/internal/fault"
)

// Freeze says how the versions of modules are written under `requires`.
type Freeze struct {
	Recursive bool   // write all modules, not only those that main.cf imports
	Operator  string // ==, ~= or >=
}

// Project returns project.yml with the versions of the installed modules under
// requires. The rest stays as it is written.
func (f Freeze) Project(p *module.Project, main string) ([]byte, error) {
	scan := p.Scan(main)
	if len(scan.Missing) > 0 {
		var names []string
		for _, m := range scan.Missing {
			names = append(names, m.Name)
		}
		return nil, fault.New("install.Freeze", fault.Conflict, "these modules are imported and are not "+
			"there: "+strings.Join(names, ", ")).
			Hint("run `ordain project install` first")
	}
	direct := map[string]bool{"std": true}
	for _, name := range p.Imports(main) {
		direct[name] = true
	}
	var lines []string
	for _, m := range scan.Modules {
		if f.Recursive || direct[m.Name] {
			lines = append(lines, f.line(m))
		}
	}
	slices.Sort(lines)
	path := filepath.Join(p.Dir, "project.yml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out, err := setList(text, "requires", lines)
	if err != nil {
		return nil, fault.Wrap("install.Freeze", fault.Invalid, err).Say(path + " cannot be rewritten")
	}
	return out, nil
}

// line returns the constraint for a module. ~= needs a version of at least two parts.
func (f Freeze) line(m *module.Module) string {
	version := m.Version
	if f.Operator == "~=" && !strings.ContainsAny(version, ".") {
		version += ".0"
	}
	return fmt.Sprintf("%s %s %s", m.Name, f.Operator, version)
}

// setList writes a list of texts under a top-level key of a YAML file. All other lines
// stay as they are, including comments.
func setList(text []byte, key string, items []string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it is not a list of `key: value`")
	}
	root := doc.Content[0]
	if root.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("it is written in one line with braces; write a line for each key")
	}
	block := key + ":\n"
	if len(items) == 0 {
		block = key + ": []\n"
	}
	for _, item := range items {
		block += "  - " + item + "\n"
	}
	lines := strings.SplitAfter(string(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		lines[len(lines)-1] = last + "\n"
	}
	from, to := len(lines), len(lines)
	for i := 0; i < len(root.Content); i += 2 {
		if root.Content[i].Value != key {
			continue
		}
		from = root.Content[i].Line - 1
		if i+2 < len(root.Content) {
			to = root.Content[i+2].Line - 1
		}
		// Comments and blank lines before the next key belong to that key.
		for to > from+1 && free(lines[to-1]) {
			to--
		}
		break
	}
	out := strings.Join(lines[:from], "") + block + strings.Join(lines[to:], "")
	return []byte(out), sameBut(text, []byte(out), key)
}

// free reports whether a line is empty, or a comment at the margin.
func free(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") ||
		strings.HasPrefix(strings.TrimSpace(line), "...")
}

// sameBut checks that nothing but a key has changed.
func sameBut(before, after []byte, key string) error {
	var a, b map[string]any
	if err := yaml.Unmarshal(before, &a); err != nil {
		return err
	}
	if err := yaml.Unmarshal(after, &b); err != nil {
		return fmt.Errorf("the key %s is written in a way that cannot be replaced: %w", key, err)
	}
	delete(a, key)
	delete(b, key)
	x, errX := yaml.Marshal(a)
	y, errY := yaml.Marshal(b)
	if errX != nil || errY != nil || string(x) != string(y) {
		return fmt.Errorf(
			"the key %s is written in a way that cannot be replaced; write its items on lines of their own",
			key,
		)
	}
	return nil
}
