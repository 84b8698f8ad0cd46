package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/solve"
)

// clusterInput is a field of a form, with what was typed and what is wrong with it.
type clusterInput struct {
	Name        string
	Label       string
	Kind        string // text, number, password, select, checkbox, lines
	Value       string
	Help        string
	Placeholder string
	Options     []choice // of a select
	On          bool     // of a checkbox
	Required    bool
	Min, Max    int // of a number; 0: no bound
	Again       bool
	Wide        bool
	Wrong       []string
}

// ID is the id of the element.
func (i clusterInput) ID() string { return "c-" + i.Name }

// wrongs are what is wrong with a form, by field; the empty name is for what concerns no field alone.
type wrongs map[string][]string

func (w wrongs) add(field, text string) { w[field] = append(w[field], text) }

// clusterForm is a form that is planned, and then committed.
type clusterForm struct {
	Action   string // where it is planned
	Commit   string // where it is committed; empty: the reader may not
	Word     string // on the button that commits
	Hidden   []choice
	Groups   []inputGroup
	Services *ticks // nil: the form does not ask for services
	Plan     *planView
	Mark     string // tells apart what was planned
	Notes    []string
	Wrong    []string // what concerns no field alone
	Reasons  []string // that contradict each other
	Hint     string
}

// inputGroup are fields below a heading. Folded ones are seldom needed.
type inputGroup struct {
	Title  string
	Folded bool
	Inputs []clusterInput
}

// ticks are the services that a template allows.
type ticks struct {
	Rows  []tick
	Wrong []string
}

type tick struct {
	Name, Help string
	On         bool
}

// place puts what is wrong beside the fields, and the rest on top. A group with something wrong is open.
func (f *clusterForm) place(w wrongs) {
	rest := maps.Clone(w)
	for i := range f.Groups {
		g := &f.Groups[i]
		for j := range g.Inputs {
			in := &g.Inputs[j]
			in.Wrong = w[in.Name]
			delete(rest, in.Name)
			g.Folded = g.Folded && len(in.Wrong) == 0
		}
	}
	if f.Services != nil {
		f.Services.Wrong = w["services"]
		delete(rest, "services")
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		f.Wrong = append(f.Wrong, rest[name]...)
	}
}

// typed reads what a form has for a field, or a default before a person typed something.
func typed(values url.Values, name, def string) string {
	if values == nil {
		return def
	}
	return strings.TrimSpace(strings.ReplaceAll(values.Get(name), "\r\n", "\n"))
}

// fieldPrefix begins the names of the fields that a provider asks users for.
const fieldPrefix = "field."

// providerInputs makes inputs of the fields of a provider. have are values that the cluster has; secrets have none.
func providerInputs(
	fields map[string]catalogue.Field,
	have map[string]any,
	values url.Values,
	change bool,
) []clusterInput {
	var out []clusterInput
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		in := clusterInput{Name: fieldPrefix + name, Label: f.Label, Help: f.Tip, Kind: "text"}
		if in.Label == "" {
			in.Label = name
		}
		def := f.Default
		if v, known := have[name]; known {
			if raw, err := json.Marshal(v); err == nil {
				def = raw
			}
		}
		switch {
		case f.Secret():
			in.Kind = "password"
			in.Again = values.Get(in.Name) != "" || slices.Contains(values["typed"], in.Name)
			if change {
				in.Placeholder = "unchanged"
			}
		case f.Type == "select":
			in.Kind = "select"
			in.Options = optionsOf(f, typed(values, in.Name, string(compacted(def))))
		case f.Type == "checkbox":
			in.Kind = "checkbox"
			in.On = string(compacted(def)) == "true"
			if values != nil {
				in.On = values.Get(in.Name) == "true"
			}
		case f.Type == "json" || f.Type == "file":
			in.Kind, in.Wide = "lines", true
			in.Value = typed(values, in.Name, wholeText(orNothing(def)))
		default:
			in.Value = typed(values, in.Name, wholeText(orNothing(def)))
		}
		out = append(out, in)
	}
	return out
}

// orNothing is an empty text for a value that is not given.
func orNothing(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`""`)
	}
	return raw
}

// optionsOf lists the options of a select. Its values are JSON, so that 1 and "1" are told apart.
func optionsOf(f catalogue.Field, picked string) []choice {
	out := []choice{{"", "choose", picked == ""}}
	for _, o := range f.Options {
		value := string(compacted(o))
		out = append(out, choice{value, wholeText(o), value == picked})
	}
	return out
}

// compacted returns JSON without white space; empty if it is none.
func compacted(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}

// readFields reads what was typed into the fields of a provider. What equals the default is left out.
func readFields(fields map[string]catalogue.Field, values url.Values, w wrongs) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, f := range fields {
		key := fieldPrefix + name
		text := values.Get(key)
		if !f.Secret() {
			text = typed(values, key, "")
		}
		if text == "" && f.Type != "checkbox" {
			continue
		}
		raw, err := json.Marshal(text)
		switch {
		case f.Secret():
		case f.Type == "checkbox":
			raw = []byte(strconv.FormatBool(text == "true"))
			if len(f.Default) == 0 && text == "" {
				continue
			}
		case f.Type == "select":
			raw = compacted(json.RawMessage(text))
			if !slices.ContainsFunc(
				f.Options,
				func(o json.RawMessage) bool { return string(compacted(o)) == string(raw) },
			) {
				w.add(key, "this is none of the choices")
				continue
			}
		case f.Type == "json":
			if raw = compacted(json.RawMessage(text)); raw == nil {
				w.add(key, "this is no JSON: "+jsonProblem(text))
				continue
			}
		}
		if err != nil {
			w.add(key, err.Error())
			continue
		}
		if !f.Secret() && string(raw) == string(compacted(f.Default)) {
			continue
		}
		out[name] = raw
	}
	return out
}

// jsonProblem says what is wrong with a JSON text, and where.
func jsonProblem(text string) string {
	var v any
	err := json.Unmarshal([]byte(text), &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := text[:min(len(text), int(syntax.Offset))]
		return syntax.Error() + ", in line " + strconv.Itoa(1+strings.Count(before, "\n"))
	}
	if err != nil {
		return err.Error()
	}
	return "there is more than one value"
}

// readConfig reads the configuration: an object.
func readConfig(text string, w wrongs) map[string]any {
	if text == "" {
		return nil
	}
	v, err := manifest.Value([]byte(text)) // numbers stay as they are
	if err != nil {
		w.add("config", "this is no JSON: "+jsonProblem(text))
		return nil
	}
	object, is := v.(map[string]any)
	if !is {
		w.add("config", `this has to be an object, as {"key": "value"}`)
	}
	return object
}

// readSize reads a number of nodes.
func readSize(text string, w wrongs) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > catalogue.MaxSize {
		w.add("size", "give a number of nodes, from 1 to "+count(catalogue.MaxSize))
	}
	return n
}

// readLength reads a length of time as people write it.
func readLength(field, text string, w wrongs) time.Duration {
	if text == "" {
		return 0
	}
	d, err := catalogue.ParseDuration(text)
	switch {
	case err != nil || text[len(text)-1] >= '0' && text[len(text)-1] <= '9':
		w.add(field, "give a time with a unit, as 30m, 12h or 2d")
	case d == 0:
		w.add(field, "this has to be longer than nothing")
	}
	return time.Duration(d)
}

// length writes a length of time as readLength reads it.
func length(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= unit.of && d%unit.of == 0 {
			return strconv.FormatInt(int64(d/unit.of), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// refuse sorts an error of the cluster service to the fields that it concerns, and returns the status of the answer.
func (c *console) refuse(r *http.Request, f *clusterForm, w wrongs, err error) int {
	var contradiction *solve.Contradiction
	var missing *cluster.MissingFields
	switch {
	case errors.As(err, &contradiction):
		f.Reasons, f.Hint = contradiction.Reasons, contradiction.Hint
		for _, reason := range contradiction.Reasons {
			w.add(concernOf(reason), reason)
		}
		return http.StatusBadRequest
	case errors.As(err, &missing):
		for _, name := range missing.Fields {
			w.add(fieldPrefix+name, "the provider "+missing.Provider+" needs this")
		}
		return http.StatusBadRequest
	}
	code, _, why, do := c.meaning(r, err)
	field := ""
	switch {
	case code == http.StatusConflict && strings.Contains(why, "there is a cluster"),
		code == http.StatusConflict && strings.Contains(why, "exists already"):
		field = "name"
	case code == http.StatusBadRequest && strings.Contains(why, "the lease"), strings.Contains(why, "may live until"):
		field = "lease"
	case code == http.StatusBadRequest && strings.Contains(why, "dnsSuffix"):
		field = "dns"
	case code == http.StatusBadRequest && strings.Contains(why, "the size is "):
		field = "size"
	}
	w.add(field, why)
	if do != "" {
		f.Hint = do
	}
	return code
}

var (
	aboutHardware = regexp.MustCompile(`\bhardware types?\b`)
	aboutImage    = regexp.MustCompile(`\bimage types?\b`)
	aboutSize     = regexp.MustCompile(`^the cluster is to have |^[A-Za-z0-9._-]+ has [0-9,]+ nodes? at (least|most)$`)
)

// concernOf returns the field of the form that a reason of the solver is about.
func concernOf(reason string) string {
	switch {
	case aboutHardware.MatchString(reason):
		return "hardwaretype"
	case aboutImage.MatchString(reason):
		return "imagetype"
	case aboutSize.MatchString(reason):
		return "size"
	}
	return "services"
}
