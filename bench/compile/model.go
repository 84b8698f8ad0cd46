package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// shape is a kind of generated model.
type shape struct {
	name      string // for -shapes
	label     string // what tables add to the number of resources
	instances func(resources int) int
	files     func(resources int) map[string]string // beside project.yml
}

// shapes are the kinds of models. The first two are what the compiler was tuned
// with, the others are not.
var shapes = []shape{
	servicesWith("services", "", `"[{{ self.name }}]\nport = {{ self.port }}\ntier = {{ self.tier }}\n"`),
	servicesWith("plugins", ", a plug-in call per service", "render(self.name, self.port, self.labels)"),
	wide,
	deep,
}

// shapesNamed returns the shapes of a list of names with commas.
func shapesNamed(list string) ([]shape, error) {
	var found []shape
	for name := range strings.SplitSeq(list, ",") {
		before := len(found)
		for _, s := range shapes {
			if s.name == name {
				found = append(found, s)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("-shapes: there is no shape %q", name)
		}
	}
	return found, nil
}

// model is a generated project. One without resources is an empty main file.
type model struct {
	shape
	resources int
	dir       string
}

// title is the name of the model in tables.
func (m model) title() string {
	if m.resources == 0 {
		return "std only"
	}
	return fmt.Sprintf("%d resources%s", m.resources, m.shape.label)
}

// made is how many instances the model makes.
func (m model) made() int {
	if m.resources == 0 {
		return 0
	}
	return m.instances(m.resources)
}

// write puts the project into its folder.
func (m model) write() error {
	files := map[string]string{"main.cf": ""}
	if m.resources > 0 {
		files = m.files(m.resources)
	}
	files["project.yml"] = projectFile
	for name, content := range files {
		file := filepath.Join(m.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
