package module

import (
	"errors"
	"strings"

	"ordain.dev/ordain/compiler/pyyaml"
)

const (
	tagPrefix = pyyaml.TagPrefix
	yamlWords = "Invalid yaml syntax in "
)

// parseYAML reads a file that holds one document; an empty one is null.
func parseYAML(path string) (value, error) {
	text, err := readFile(path)
	if err != nil {
		return value{}, unreadable(path, err)
	}
	return readYAML(path, text)
}

func readYAML(path string, text []byte) (value, error) {
	root, err := pyyaml.Parse(path, text)
	if err == nil && root == nil {
		return value{node: &pyyaml.Node{}}, nil
	}
	var v value
	if err == nil {
		v, err = construct(path, root)
	}
	if err != nil {
		return value{}, refused(path, err)
	}
	return v, nil
}

// refused tells what is wrong with a file in the reference's words, and how it is
// mended. Its errors of Python's own kinds say nothing of the file.
func refused(path string, err error) error {
	var e *pyyaml.Error
	if !errors.As(err, &e) {
		return err
	}
	place := e.ProblemMark
	if place.None() {
		place = e.ContextMark
	}
	out := &Error{
		Kind:    KindInvalidMetadata,
		Message: yamlWords + path + ":\n" + e.Error(),
		At:      at(path, max(1, place.Line), place.Column),
		Hint:    yamlHint(e),
	}
	if !e.YAML() {
		out.Kind, out.Message = e.Class, e.Error()
	}
	return out
}

// yamlHints say what to do about a problem, by how its words begin.
var yamlHints = []struct{ problem, hint string }{
	{`found character '\t'`, "put spaces in place of the tab: YAML takes no tabs between words"},
	{"found character ", "put the text in quotes: YAML reserves the character at its beginning"},
	{"but found another document", "remove the line `---` in the midst of the file: it must hold one document"},
	{"expected '<document start>'", "begin all keys in the same column"},
	{"expected <block end>", "begin the lines that belong together in the same column"},
	{
		"mapping values are not allowed here",
		"put a text that holds `: ` in quotes, and begin the lines that belong together in the same column",
	},
	{"mapping keys are not allowed here", "put a text that begins with `? ` in quotes"},
	{"sequence entries are not allowed here", "begin a list on a line of its own"},
	{"could not find expected ':'", "write `key: value`, on one line up to the colon and a space behind it"},
	{"found unexpected end of stream", "close the quote"},
	{"found unexpected document separator", "close the quote before the line with --- or ..."},
	{"found unknown escape character", `write \\ for a backslash, or use single quotes`},
	{"expected ',' or", "separate the elements with commas, and close the list"},
	{"found unhashable key", "a list or a section cannot be a key; put a text that begins with [ or { in quotes"},
	{"could not determine a constructor", "leave the tag out, or put a text that begins with ! in quotes"},
	{"found undefined alias", "put a text that begins with * in quotes, or set the anchor before it is used"},
	{"second occurrence", "give each anchor a name of its own"},
	{"unacceptable character", "remove the character: it cannot be seen in most editors"},
	{"'utf-8' codec", "save it as UTF-8, without a byte order mark of another encoding"},
}

func yamlHint(e *pyyaml.Error) string {
	for _, h := range yamlHints {
		if strings.HasPrefix(e.Problem, h.problem) {
			return h.hint
		}
	}
	switch e.Class {
	case pyyaml.ClassRecursion, classMemory:
		return "put fewer lists and sections in each other"
	case pyyaml.ClassValue, classKey, classIndex, classAttribute, classType, classOverflow:
		return "put the value in quotes if it is a text"
	}
	return ""
}
