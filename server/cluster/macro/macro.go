// Package macro expands what configurations of clusters say about the machines they
// run on, as "%host.service.mysql-server%".
//
//	%host.self% %ip.self% %ip.access_v4.self%        the node itself
//	%host.service.S% %ip.service.S% %ip.T.service.S%  all nodes with the service, with commas between them
//	%host.service.S[0]%                              the first of them
//	%num.service.S%                                  how many there are
//	%instance.self.service.S%                        which of them this node is, from 1
//	%cluster.owner%
//	%join(X,' ')% %join(map(X,'$:2181'),',')%        other separators, and a text around each
//
// T is bind_v4 unless it is given. A '%' that does not begin a macro stays as it is.
package macro

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Node is a machine of the cluster.
type Node struct {
	Number    int
	Hostname  string
	Addresses map[string]string // access_v4, bind_v4
	Services  []string
}

// World is what macros are about.
type World struct {
	Self  int // number of the node for which something is expanded
	Owner string
	Nodes map[int]Node
}

// macroText finds macros: what stands between two '%' and begins as a macro does.
var macroText = regexp.MustCompile(`%((?:join\(|host\.|ip\.|num\.service\.|instance\.|cluster\.)[^%]*)%`)

// Expand replaces the macros of a text. The error names the macro, and what is wrong with it.
func Expand(text string, w World) (string, error) {
	var failed error
	out := macroText.ReplaceAllStringFunc(text, func(found string) string {
		value, err := w.value(found[1 : len(found)-1])
		if err != nil && failed == nil {
			failed = fmt.Errorf("the macro %s cannot be expanded: %w", found, err)
		}
		return value
	})
	return out, failed
}

// ExpandJSON replaces the macros in all texts of a JSON value, also in the names of fields.
func ExpandJSON(value json.RawMessage, w World) (json.RawMessage, error) {
	if !strings.Contains(string(value), "%") {
		return value, nil
	}
	decoder := json.NewDecoder(strings.NewReader(string(value)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	v, err := expandAny(v, w)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func expandAny(v any, w World) (any, error) {
	switch v := v.(type) {
	case string:
		return Expand(v, w)
	case []any:
		for i := range v {
			expanded, err := expandAny(v[i], w)
			if err != nil {
				return nil, err
			}
			v[i] = expanded
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name, err := Expand(key, w)
			if err != nil {
				return nil, err
			}
			if out[name], err = expandAny(v[key], w); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

var serviceOf = regexp.MustCompile(`service\.([A-Za-z0-9._-]+)`)

// Services returns the services whose nodes the macros of a text are about, sorted.
func Services(text string) []string {
	found := map[string]bool{}
	for _, m := range macroText.FindAllStringSubmatch(text, -1) {
		for _, s := range serviceOf.FindAllStringSubmatch(m[1], -1) {
			found[s[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

var (
	selfMacro = regexp.MustCompile(`^(?:(host)|ip(?:\.(access_v4|bind_v4))?)\.self$`)
	listMacro = regexp.MustCompile(
		`^(?:(host)|ip(?:\.(access_v4|bind_v4))?)\.service\.([A-Za-z0-9._-]+?)(?:\[(\d{1,5})\])?$`,
	)
	countMacro = regexp.MustCompile(`^num\.service\.([A-Za-z0-9._-]+)$`)
	whichMacro = regexp.MustCompile(`^instance\.self\.service\.([A-Za-z0-9._-]+)$`)
	joinMacro  = regexp.MustCompile(`^join\((.+),\s*'([^']*)'\)$`)
	mapMacro   = regexp.MustCompile(`^map\((.+),\s*'([^']*)'\)$`)
)

func (w World) value(macro string) (string, error) {
	if m := joinMacro.FindStringSubmatch(macro); m != nil {
		list, err := w.list(m[1])
		return strings.Join(list, m[2]), err
	}
	if m := countMacro.FindStringSubmatch(macro); m != nil {
		return strconv.Itoa(len(w.with(m[1]))), nil
	}
	if m := whichMacro.FindStringSubmatch(macro); m != nil {
		i := slices.IndexFunc(w.with(m[1]), func(n Node) bool { return n.Number == w.Self })
		if i < 0 {
			return "", fmt.Errorf("node %d does not have the service %s", w.Self, m[1])
		}
		return strconv.Itoa(i + 1), nil
	}
	if macro == "cluster.owner" {
		return w.Owner, nil
	}
	if m := selfMacro.FindStringSubmatch(macro); m != nil {
		return property(w.Nodes[w.Self], m[1], m[2])
	}
	list, err := w.list(macro)
	return strings.Join(list, ","), err
}

// list returns the values of a macro about all nodes with a service.
func (w World) list(macro string) ([]string, error) {
	macro = strings.TrimSpace(macro)
	if m := mapMacro.FindStringSubmatch(macro); m != nil {
		list, err := w.list(m[1])
		for i := range list {
			list[i] = strings.ReplaceAll(m[2], "$", list[i])
		}
		return list, err
	}
	m := listMacro.FindStringSubmatch(macro)
	if m == nil {
		return nil, fmt.Errorf("%q is no macro: there are host.self, ip.self, host.service.NAME, ip.service.NAME, "+
			"num.service.NAME, instance.self.service.NAME, cluster.owner, join and map", macro)
	}
	nodes := w.with(m[3])
	if m[4] != "" {
		i, _ := strconv.Atoi(m[4])
		if i >= len(nodes) {
			return nil, fmt.Errorf("there are %d nodes with the service %s", len(nodes), m[3])
		}
		nodes = nodes[i : i+1]
	}
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		value, err := property(n, m[1], m[2])
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

// with returns the nodes that have a service, by number.
func (w World) with(service string) (out []Node) {
	for _, number := range slices.Sorted(maps.Keys(w.Nodes)) {
		if slices.Contains(w.Nodes[number].Services, service) {
			out = append(out, w.Nodes[number])
		}
	}
	return out
}

// property returns the host name of a node, or its address of a kind.
func property(n Node, host, kind string) (string, error) {
	if host != "" {
		return n.Hostname, nil
	}
	if kind == "" {
		kind = "bind_v4"
	}
	address := n.Addresses[kind]
	if address == "" {
		return "", fmt.Errorf("the node %s has no address %s yet", n.Hostname, kind)
	}
	return address, nil
}
