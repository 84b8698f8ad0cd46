package parity

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Outcomes are the recorded outcomes by case.
type Outcomes map[string]*Document

// LoadOutcomes reads the files that WriteOutcomes writes.
func LoadOutcomes(dir string) (Outcomes, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	all := Outcomes{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&all); err != nil {
			return nil, err
		}
	}
	for _, d := range all { // canonical may have changed since it was recorded
		if d.Success {
			d.Instances, d.Variables = canonical(d.Instances, d.Variables)
		}
	}
	return all, nil
}

// WriteOutcomes writes a file for each area, with one line for each case.
func WriteOutcomes(dir string, all Outcomes) error {
	areas := map[string][]string{}
	for id := range all {
		area := id[:strings.LastIndexByte(id, '/')]
		areas[area] = append(areas[area], id)
	}
	for area, ids := range areas {
		slices.Sort(ids)
		var b strings.Builder
		b.WriteString("{\n")
		for i, id := range ids {
			b.WriteString(text(id) + ": " + text(all[id]))
			if i < len(ids)-1 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString("}\n")
		if err := writeFile(filepath.Join(dir, strings.ReplaceAll(area, "/", "-")+".json"), b.String()); err != nil {
			return err
		}
	}
	return nil
}
