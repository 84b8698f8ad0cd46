package venv

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// resolutionAge is how long the versions that were chosen for a list of
// requirements are used again. Asking the index takes most of the time of a
// build, and a second executor should be like the first.
const resolutionAge = 24 * time.Hour

// resolutionFile returns the path where the chosen versions are recorded. It is
// empty for requirements that are more than a name and versions, such as an
// address or an option, because names and versions cannot reproduce these.
func (m *Maker) resolutionFile(s Spec, i Interpreter, from sources) string {
	for _, r := range slices.Concat(s.Requirements, s.Constraints) {
		if r = strings.TrimSpace(r); strings.HasPrefix(r, "-") || strings.ContainsAny(r, "@/") {
			return ""
		}
	}
	text, err := json.Marshal(struct {
		Requirements, Constraints []string
		Pip                       intent.PipConfig
		Python, Core, Index       string
		Extra, Links              []string
		Pre                       bool
	}{
		slices.Sorted(slices.Values(s.Requirements)), slices.Sorted(slices.Values(s.Constraints)), s.Pip,
		i.Path + i.Version, CoreVersion, from.index, from.extra, from.findLinks, from.pre,
	})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return filepath.Join(m.c.CacheDir, "resolved", hex.EncodeToString(sum[:16])+".txt")
}

func freshResolution(path string) bool {
	info, err := os.Stat(path)
	return path != "" && err == nil && time.Since(info.ModTime()) < resolutionAge
}

// recordResolution records which versions were installed. If that fails, the next
// build just takes longer.
func recordResolution(path string, pins []string) {
	if path != "" {
		_ = writeWhole(path, []byte(strings.Join(pins, "\n")+"\n"))
	}
}
