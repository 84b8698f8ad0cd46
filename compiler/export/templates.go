package export

import (
	"io"
	"os"
	"path/filepath"
)

// maxTemplate bounds how much of a template is read to find the names in it.
const maxTemplate = 1 << 20

// templateText reads a template of a module for lineage; false when there is no such file.
func (p *provenancer) templateText(module, path string) (shown, text string, ok bool) {
	for _, m := range p.in.Modules {
		if m.Name != module || m.TemplatesDir == "" || !filepath.IsLocal(path) {
			continue
		}
		file := filepath.Join(m.TemplatesDir, path)
		f, err := os.Open(file)
		if err != nil {
			return "", "", false
		}
		defer f.Close()
		read, err := io.ReadAll(io.LimitReader(f, maxTemplate))
		return p.shown(file), string(read), err == nil
	}
	return "", "", false
}
