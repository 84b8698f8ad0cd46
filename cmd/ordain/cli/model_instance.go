package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/lineage"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/provenance"
)

// explainInstance finds the instance that the question is about and traces its attributes.
func explainInstance(out *compiler.Outcome, q question) (provenance.Explanation, error) {
	found, err := findInstance(out.Result, q)
	if err != nil {
		return provenance.Explanation{}, err
	}
	tracer, entry := lineage.New(out.Result), provenance.Entry{}
	values := map[string]json.RawMessage{}
	for _, a := range found.Entity().Attributes {
		tracer.Attribute(&entry, a.Name, found, a.Name, false)
		if v, ok := found.Value(a); ok {
			values[a.Name] = valueJSON(v)
		}
	}
	e := provenance.Explanation{Subject: lineage.Label(found)}
	tracer.Add(e.Subject, &entry)
	fields, _ := tracer.Table().Explain(e.Subject)
	e.Attributes = provenance.WithValues(fields, values)
	return e, nil
}

func findInstance(result *eval.Result, q question) (*eval.Instance, error) {
	kind, inside, selected := strings.Cut(q.subject, "[")
	if !selected {
		if i := variableInstance(result, kind); i != nil {
			return i, nil
		}
	}
	var of, matching []*eval.Instance
	var labels []string
	for _, i := range result.Instances {
		name := i.Entity().Name
		if name != kind && !strings.HasSuffix(name, "::"+kind) {
			labels = append(labels, lineage.Label(i))
			continue
		}
		of = append(of, i)
		if matches(i, strings.TrimSuffix(inside, "]")) {
			matching = append(matching, i)
		}
	}
	switch {
	case len(matching) == 1:
		return matching[0], nil
	case len(matching) > 1:
		return nil, fmt.Errorf("%d instances match %s:\n%s", len(matching), printable(q.subject), listed(matching))
	case len(of) > 0:
		near := make([]string, len(of))
		for n, i := range of {
			near[n] = lineage.Label(i)
		}
		return nil, unmatched("instance", q.subject, closest(q.subject, near))
	}
	return nil, unmatched("instance", q.subject, closest(q.subject, labels))
}

// variableInstance returns the instance that a variable holds, which is one of the
// main file or has a qualified name.
func variableInstance(result *eval.Result, name string) *eval.Instance {
	for _, v := range result.Variables {
		if v.Name == name || v.Name == "__config__::"+name {
			i, _ := v.Value.(*eval.Instance)
			return i
		}
	}
	return nil
}

// matches reports whether an instance has the attributes of a selector such as k=v, k=v.
func matches(i *eval.Instance, keys string) bool {
	if keys == "" {
		return true
	}
	for key := range strings.SplitSeq(keys, ",") {
		name, want, ok := strings.Cut(key, "=")
		a := i.Entity().Attribute(strings.TrimSpace(name))
		if !ok || a == nil {
			return false
		}
		v, has := i.Value(a)
		if !has || types.Text(v) != strings.Trim(strings.TrimSpace(want), `"'`) {
			return false
		}
	}
	return true
}

// shownCandidates is how many instances are listed.
const shownCandidates = 20

func listed(instances []*eval.Instance) string {
	var b strings.Builder
	for n, i := range instances {
		if n == shownCandidates {
			fmt.Fprintf(&b, "    and %d more\n", len(instances)-n)
			break
		}
		at := i.At()
		fmt.Fprintf(&b, "    %s, made at %s:%d\n", printable(lineage.Label(i)), at.File.Path, at.Start.Line)
	}
	return strings.TrimRight(b.String(), "\n")
}

// valueJSON returns a value of the model as JSON, with labels for instances.
func valueJSON(v types.Value) json.RawMessage {
	var plain any
	switch v := v.(type) {
	case types.Null:
	case types.Bool:
		plain = bool(v)
	case types.Int:
		plain = int64(v)
	case types.Str:
		plain = string(v)
	case *eval.Instance:
		plain = lineage.Label(v)
	case *types.List:
		items := make([]json.RawMessage, len(v.Items))
		for n, item := range v.Items {
			items[n] = valueJSON(item)
		}
		plain = items
	case types.Unknown:
		plain = "not known yet"
	default:
		plain = types.Repr(v)
	}
	raw, err := json.Marshal(plain)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// closest returns the names that are most similar to name, the most similar first.
func closest(name string, names []string) []string {
	type near struct {
		name string
		far  int
	}
	var all []near
	for _, n := range names {
		if d := min(distance(name, n), distance(name, withoutNamespace(n))); d <= max(3, len(name)/2) {
			all = append(all, near{n, d})
		}
	}
	slices.SortStableFunc(all,
		func(a, b near) int { return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.name, b.name)) })
	var out []string
	for _, n := range all[:min(len(all), 5)] {
		if !slices.Contains(out, n.name) {
			out = append(out, n.name)
		}
	}
	return out
}

// withoutNamespace returns C[…] for a::b::C[…].
func withoutNamespace(label string) string {
	kind, _, _ := strings.Cut(label, "[")
	if i := strings.LastIndex(kind, "::"); i >= 0 {
		return label[i+2:]
	}
	return label
}

// distance returns the number of edits that turn one text into another.
func distance(a, b string) int {
	const longest = 500 // compare only the beginning of longer texts
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost = 1 + min(corner, row[j], row[j+1])
			}
			corner, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
