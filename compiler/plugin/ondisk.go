package plugin

import (
	"encoding/json"
	"errors"
	"os"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/python/worker"
)

// onDisk answers what Python wants to know of the files of the project, which
// needs no model: the imports of a file, the metadata of a module.
func (h *Host) onDisk(op string, args json.RawMessage) (any, error) {
	var request struct {
		Path string `json:"n"`
	}
	if err := json.Unmarshal(args, &request); err != nil {
		return nil, err
	}
	if op == "imports" {
		return imports(request.Path)
	}
	if h.config.About == nil {
		return nil, nil
	}
	about, err := h.config.About(request.Path)
	if err != nil {
		return nil, &worker.Failure{Kind: "compiler", Class: "InvalidMetadata", Message: err.Error()}
	}
	return map[string]any{"generation": about.Generation, "fields": about.Fields}, nil
}

// imports are the imports of a file: name, alias and line of each.
func imports(path string) (any, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &worker.Failure{Kind: "compiler", Class: "FileNotFoundError", Message: err.Error()}
	}
	file, err := syntax.Parse(syntax.FileInfo{Path: path}, text)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, &worker.Failure{Kind: "compiler", Class: "ParserException", Message: wrong.Message}
	} else if err != nil {
		return nil, err
	}
	out := [][3]any{}
	for _, st := range file.Statements {
		if im, is := st.(*syntax.Import); is {
			alias := im.Alias
			if alias == "" {
				alias = im.Module.Text
			}
			out = append(out, [3]any{im.Module.Text, alias, im.At.Start.Line})
		}
	}
	return out, nil
}
