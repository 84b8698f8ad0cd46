// Package contents makes the changes of resources readable: it compares by line what their attributes hold, or what
// the hashes in them stand for.
//
//	an attribute changes ─▶ a text of several lines, or a list: its lines are compared
//	                     └▶ a SHA-1: the two contents in the store are, if the project may read them
//
// It masks as the comments at forges do: attributes whose names speak of secrets have no difference, and the secrets of
// the environment are masked in contents.
package contents

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/store"
)

const (
	// maxNames and maxBytes bound what is read for one page.
	maxNames = 400
	maxBytes = 16 << 20
)

// Reader compares for one environment.
type Reader struct {
	Store   *store.Store
	Project intent.ProjectID
	// Mask masks secrets; nil masks nothing.
	Mask *secret.Redactor
	// NoFiles keeps the contents of files back, for readers who may not see files.
	NoFiles bool
	// Found says that the values before a change were found on machines. Where a handler reports only the hash of what
	// it found, the result has the content that is wanted, all of it, and says so.
	Found bool
}

var sha1 = regexp.MustCompile(`^[0-9a-f]{40}$`)

// hashOf returns the SHA-1 that a value is; empty when it is none.
func hashOf(v any) string {
	text, ok := v.(string)
	if !ok || !sha1.MatchString(text) {
		return ""
	}
	return text
}

// isHash reports whether a change is one of contents that are named by their hashes.
func isHash(c intent.AttributeChange) bool {
	was, now := hashOf(c.Current), hashOf(c.Desired)
	return was != "" && (now != "" || empty(c.Desired)) || now != "" && empty(c.Current)
}

func empty(v any) bool { return v == nil || v == "" }

// Diffs compares the attributes of resources by line. The result has a map for each resource, which has no entry for an
// attribute that is short or not text.
func (r Reader) Diffs(
	ctx context.Context, resources []map[string]intent.AttributeChange,
) ([]map[string]*linediff.Diff, error) {
	var names []string
	for _, attributes := range resources {
		for name, change := range attributes {
			if isHash(change) && !SecretName(name) {
				names = append(names, hashOf(change.Current), hashOf(change.Desired))
			}
		}
	}
	files, err := r.read(ctx, names)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]*linediff.Diff, len(resources))
	for i, attributes := range resources {
		out[i] = map[string]*linediff.Diff{}
		for name, change := range attributes {
			if d := r.diff(files, name, change); d != nil && (len(d.Lines) > 0 || d.Note != "") {
				out[i][name] = d
			}
		}
	}
	return out, nil
}

// stored is what is known of a file: its content, or why there is none.
type stored struct {
	content []byte
	why     string
}

// read returns files by name.
func (r Reader) read(ctx context.Context, names []string) (map[string]stored, error) {
	out := map[string]stored{}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
	if len(names) == 0 || r.NoFiles {
		return out, nil
	}
	names = names[:min(len(names), maxNames)]
	sizes, err := r.Store.FileSizes(ctx, names, []intent.ProjectID{r.Project})
	if err != nil {
		return nil, err
	}
	var wanted []string
	total := 0
	for _, name := range names {
		size, ok := sizes[name]
		switch {
		case !ok:
		case size > linediff.MaxBytes:
			out[name] = stored{why: "too large to compare by line"}
		case total+size > maxBytes:
			out[name] = stored{why: "not compared here, because the page has too many files"}
		default:
			total += size
			wanted = append(wanted, name)
		}
	}
	contents, err := r.Store.Files(ctx, wanted)
	for name, content := range contents {
		out[name] = stored{content: content}
	}
	return out, err
}

func (r Reader) diff(files map[string]stored, name string, c intent.AttributeChange) *linediff.Diff {
	if SecretName(name) {
		return nil
	}
	if !isHash(c) {
		was, now, ok := texts(c)
		if !ok {
			return nil
		}
		return linediff.Compare(r.mask(was), r.mask(now))
	}
	if r.NoFiles {
		return nil
	}
	if d, only := r.wanted(files, c); only {
		return d
	}
	var sides [2]string
	for i, v := range []any{c.Current, c.Desired} {
		hash := hashOf(v)
		if hash == "" {
			continue
		}
		file, ok := files[hash]
		switch {
		case !ok && i == 0:
			return &linediff.Diff{Note: "the server does not have the old content"}
		case !ok:
			return &linediff.Diff{Note: "the server does not have the new content"}
		case file.why != "":
			return &linediff.Diff{Note: file.why}
		case linediff.Binary(file.content):
			return &linediff.Diff{Note: "binary content"}
		}
		sides[i] = r.mask(string(file.content))
	}
	if sides[0] == sides[1] && c.Current != nil && c.Desired != nil {
		return &linediff.Diff{Note: "only masked secrets differ"}
	}
	return linediff.Compare(sides[0], sides[1])
}

// wanted returns the content that is wanted where only the hash of what was found is known; nil if it is not known
// either, so that the hashes say all.
func (r Reader) wanted(files map[string]stored, c intent.AttributeChange) (d *linediff.Diff, only bool) {
	found, want := hashOf(c.Current), hashOf(c.Desired)
	if _, known := files[found]; known || !r.Found || found == "" {
		return nil, false
	}
	file, known := files[want]
	if !known {
		return nil, true
	}
	why := "the content found has the hash " + found[:12] + "; nothing else is known of it, because the handler " +
		"reports only its hash"
	switch {
	case file.why != "":
		return &linediff.Diff{Note: why}, true
	case linediff.Binary(file.content):
		return &linediff.Diff{Note: why + "; the content wanted is binary"}, true
	}
	d = linediff.Whole(r.mask(string(file.content)))
	d.Note = why + "; this is the content wanted"
	return d, true
}

func (r Reader) mask(text string) string {
	if r.Mask == nil {
		return text
	}
	return r.Mask.Text(text)
}

// texts returns both values as texts of lines; false when a difference by line would say no more than the values.
func texts(c intent.AttributeChange) (was, now string, ok bool) {
	was, long1, ok1 := text(c.Current)
	now, long2, ok2 := text(c.Desired)
	return was, now, ok1 && ok2 && (long1 || long2)
}

// text returns a value as text, and whether it has several lines.
func text(v any) (out string, long, ok bool) {
	switch v := v.(type) {
	case nil:
		return "", false, true
	case string:
		return v, strings.Contains(strings.TrimSuffix(v, "\n"), "\n"), true
	case map[string]any, []any:
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if encoder.Encode(Masked(v)) != nil {
			return "", false, false
		}
		return b.String(), strings.Count(b.String(), "\n") > 3, true
	}
	return "", false, false
}

// secretNames are parts of the names of attributes whose values are not told.
var secretNames = []string{
	"password", "passwd", "passphrase", "secret", "token", "private_key", "privatekey", "credential", "api_key",
	"apikey",
}

// SecretName reports whether an attribute of this name may hold a secret.
func SecretName(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(lower, s) })
}

// Masked hides what dicts have under names of secrets.
func Masked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			if out[name] = Masked(inner); SecretName(name) && !empty(inner) {
				out[name] = intent.Secret
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = Masked(inner)
		}
		return out
	}
	return v
}
