package venv

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// damagedPackages returns the packages of which a file differs from the hash in their own
// RECORD. Scripts, which installers change, do not count.
func damagedPackages(site string) []string {
	var names []string
	lists, _ := filepath.Glob(filepath.Join(site, "*.dist-info", "RECORD"))
	buffer := make([]byte, 128<<10)
	for _, list := range lists {
		if !matchesRecord(site, list, buffer) {
			stem := strings.TrimSuffix(filepath.Base(filepath.Dir(list)), ".dist-info")
			name, _, _ := strings.Cut(stem, "-")
			names = append(names, distribution(name))
		}
	}
	slices.Sort(names)
	return names
}

func matchesRecord(site, list string, buffer []byte) bool {
	f, err := os.Open(list)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := csv.NewReader(f)
	lines.FieldsPerRecord, lines.ReuseRecord = -1, true
	for {
		fields, err := lines.Read()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if len(fields) < 2 || !filepath.IsLocal(fields[0]) {
			continue
		}
		code, ok := strings.CutPrefix(fields[1], "sha256=")
		want, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(code, "="))
		if !ok || err != nil {
			continue
		}
		if sumOf(filepath.Join(site, fields[0]), fs.FileMode(0), buffer) != hex.EncodeToString(want) {
			return false
		}
	}
}
