package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/internal/parity/generate"
)

// reduce leaves out statements of a model as long as its verdict stays the same: first
// eight at a time, at the end one by one.
func (s *searcher) reduce(ctx context.Context, c parity.Case, was comparison) (comparison, parity.Case, error) {
	for size := 8; size > 0; {
		var smaller []parity.Case
		for _, path := range slices.Sorted(maps.Keys(c.Files)) {
			for _, text := range shortened(path, c.Files[path], size) {
				files := maps.Clone(c.Files)
				files[path] = text
				name := fmt.Sprint(len(smaller))
				smaller = append(smaller, parity.Case{Area: "reduced", Name: name, Files: files, Export: c.Export})
			}
		}
		comparisons, err := s.compare(ctx, smaller)
		if err != nil {
			return was, c, err
		}
		same := slices.IndexFunc(smaller, func(c parity.Case) bool {
			found, ok := comparisons[c.ID()]
			return ok && found.verdict == was.verdict
		})
		if same < 0 {
			size /= 2
			continue
		}
		c.Files, was = smaller[same].Files, comparisons[smaller[same].ID()]
	}
	return was, c, nil
}

// shortened returns the text of a file without each of its runs of size statements.
func shortened(path, text string, size int) []string {
	var statements []string
	separator := "\n"
	switch filepath.Ext(path) {
	case ".cf":
		statements = generate.Statements(text)
	case ".py":
		separator = "\n\n\n"
		statements = strings.Split(strings.TrimSpace(text), separator)
	}
	var texts []string
	for i := 0; i < len(statements); i += size {
		rest := slices.Concat(statements[:i], statements[min(i+size, len(statements)):])
		texts = append(texts, strings.Join(rest, separator)+"\n")
	}
	return texts
}

// archive is the case as it can be put into the corpus.
func archive(c parity.Case) string {
	a := &txtar.Archive{}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		a.Files = append(a.Files, txtar.File{Name: c.Name + "/" + path, Data: []byte(c.Files[path])})
	}
	return string(txtar.Format(a))
}
