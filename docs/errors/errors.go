// Package errors has the pages that explain the codes of the compiler's errors and warnings. `ordain
// explain` prints them; a test compiles the examples in them.
package errors

import (
	"embed"
	"sort"
	"strings"
)

//go:embed *.md
var files embed.FS

// Page is the page of a code, such as E0202; ok is false when there is none.
func Page(code string) (text string, ok bool) {
	content, err := files.ReadFile(strings.ToUpper(code) + ".md")
	if err != nil || strings.Contains(code, "/") {
		return "", false
	}
	return string(content), true
}

// Codes lists the codes that have a page, in order.
func Codes() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil
	}
	var codes []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".md"); name != "README" {
			codes = append(codes, name)
		}
	}
	sort.Strings(codes)
	return codes
}

// Title is the first line of a page, without its mark.
func Title(code string) string {
	text, _ := Page(code)
	first, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(first, "# ")
}
