package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// maxRows is how many rows of a table a form may have.
const maxRows = 1000

// entityEdit applies a form to the JSON of an entity.
type entityEdit struct {
	t        tree
	all      *catalogue.Catalogue
	v        url.Values
	fresh    bool              // the entity is new, and gets its name from the form
	typed    map[string]string // what the JSON cannot have, by name of field
	problems []catalogue.Problem
	lost     []string // secrets that were typed
}

func (e *entityEdit) text(name string) string {
	return strings.TrimSpace(strings.ReplaceAll(e.v.Get(name), "\r\n", "\n"))
}

// names reads a list of names: boxes, or a text with commas.
func (e *entityEdit) names(name string) []string { return splitNames(strings.Join(e.v[name], ",")) }

func splitNames(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}

func (e *entityEdit) wrong(field, format string, args ...any) {
	e.problems = append(e.problems, catalogue.Problem{Field: field, Text: fmt.Sprintf(format, args...)})
}

func (e *entityEdit) apply(kind catalogue.Kind) {
	if e.fresh {
		e.t.setText(e.text("name"), "name")
	}
	for _, name := range []string{"label", "icon", "description"} {
		e.t.setText(e.text(name), name)
	}
	switch kind {
	case catalogue.Providers:
		e.provider()
	case catalogue.HardwareTypes:
		e.providerMap("flavor")
	case catalogue.ImageTypes:
		e.providerMap("image", "sshuser")
	case catalogue.Services:
		e.service()
	case catalogue.PartialTemplates:
		e.t.set(nil, "immutable")
		if e.text("immutable") == "true" {
			e.t.set(true, "immutable")
		}
		e.compatibility()
	case catalogue.Templates:
		e.t.setText(e.text("parent"), "parent", "name")
		var includes []any
		for _, name := range e.names("includes") {
			includes = append(includes, map[string]any{"name": name})
		}
		e.t.set(includes, "includes")
		e.links()
		e.compatibility()
		e.constraints()
		for _, member := range []string{"initial", "max", "step"} {
			e.lease(member)
		}
	}
}

func (e *entityEdit) provider() {
	before, kind := e.t.text("providertype"), e.text("providertype")
	e.t.setText(kind, "providertype")
	fields := map[string]catalogue.Field{}
	if t := e.all.ProviderTypes[kind]; t != nil {
		fields = t.Parameters.Admin.Fields
	}
	have := maps.Clone(e.t.object("provisioner"))
	if before != kind {
		for name := range have {
			if _, known := fields[name]; !known || isHidden(have[name]) {
				e.t.set(nil, "provisioner", name)
			}
		}
	}
	e.plugin("field.", fields, "provisioner")
}

func isHidden(value any) bool {
	text, ok := value.(string)
	return ok && text == catalogue.Hidden
}

// plugin sets the values of a plug-in's fields, whose names in the form begin with prefix, in the object at a path.
func (e *entityEdit) plugin(prefix string, fields map[string]catalogue.Field, path ...string) {
	for _, key := range sortedNames(e.v) {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok || name == "" {
			continue
		}
		at := append(slices.Clone(path), name)
		text, d := e.v.Get(key), fields[name]
		if d.Secret() || isHidden(e.t.at(at...)) {
			e.secret(key, name, text, d, at)
			continue
		}
		text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
		switch {
		case text == "":
			e.t.set(nil, at...)
		case e.t.at(at...) != nil && plainValue(e.t.at(at...)) == text: // it stays as it is written
		case d.Type == "checkbox":
			e.t.set(text == "true", at...)
		case d.Type == "json":
			value, valid := jsonValue(text)
			e.t.set(value, at...)
			if !valid {
				e.typed[key] = text
			}
		default:
			e.t.set(text, at...)
		}
	}
}

// secret sets a secret; left empty, it stays what it is.
func (e *entityEdit) secret(key, name, text string, d catalogue.Field, at []string) {
	switch {
	case e.v.Get("clear."+key) == "yes":
		e.t.set(nil, at...)
	case strings.TrimSpace(text) == "":
	default:
		e.t.set(text, at...)
		label := d.Label
		if label == "" {
			label = name
		}
		e.lost = append(e.lost, label)
	}
}

// rows calls do for each row of a table that the form has.
func (e *entityEdit) rows(prefix string, do func(row string)) {
	seen := map[int]bool{}
	for key := range e.v {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			number, _, _ := strings.Cut(rest, ".")
			if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < maxRows {
				seen[n] = true
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(seen)) {
		do(prefix + strconv.Itoa(n) + ".")
	}
}

func (e *entityEdit) providerMap(keys ...string) {
	before := tree{"m": e.t.object("providermap")}
	out := map[string]any{}
	e.rows("row.", func(row string) {
		provider := e.text(row + "provider")
		values := tree{}
		if had := before.object("m", provider); had != nil {
			for _, key := range keys {
				if had[key] != nil {
					values[key] = had[key]
				}
			}
		}
		given := false
		for _, key := range keys {
			given = given || e.text(row+key) != ""
			values.setText(e.text(row+key), key)
		}
		for _, pair := range strings.Split(e.text(row+"more"), "\n") {
			name, value, found := strings.Cut(pair, "=")
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			given = true
			if !found {
				e.typed[row+"more"] = e.text(row + "more")
				e.wrong("providermap."+provider+".*", "%.60q is no value: write name=value", name)
				continue
			}
			if had := before.at("m", provider, name); had != nil {
				values[name] = had
			}
			values.setText(strings.TrimSpace(value), name)
		}
		switch {
		case provider == "" && given:
			e.wrong("providermap", "a row has values, and no provider: name the provider, or empty the row")
		case provider == "":
		case out[provider] != nil:
			e.wrong("providermap."+provider, "%s stands in two rows", provider)
		default:
			out[provider] = map[string]any(values)
		}
	})
	delete(e.t, "providermap")
	if len(out) > 0 {
		e.t["providermap"] = out
	}
}

func (e *entityEdit) service() {
	for _, path := range []string{
		"provides", "conflicts", "install.requires", "install.uses", "runtime.requires", "runtime.uses",
	} {
		e.t.setNames(e.names(path), append([]string{"dependencies"}, strings.Split(path, ".")...)...)
	}
	for _, action := range catalogue.Actions {
		name := string(action)
		at := []string{"provisioner", "actions", name}
		kind := e.text("action." + name + ".type")
		if kind == "" {
			e.t.set(nil, at...)
			continue
		}
		fields := map[string]catalogue.Field{}
		if t := e.all.AutomatorTypes[kind]; t != nil {
			maps.Copy(fields, t.Parameters.User.Fields)
			maps.Copy(fields, t.Parameters.Admin.Fields)
		}
		if e.t.text(append(at, "type")...) != kind {
			for key := range maps.Clone(e.t.object(append(at, "fields")...)) {
				if _, known := fields[key]; !known {
					e.t.set(nil, append(at, "fields", key)...)
				}
			}
		}
		e.t.setText(kind, append(at, "type")...)
		for key := range fields {
			if d := fields[key]; d.Secret() {
				delete(fields, key) // the form does not have it; if somebody sends it, the check refuses it
			}
		}
		e.plugin("action."+name+".field.", fields, append(at, "fields")...)
	}
}

func (e *entityEdit) links() {
	had, _ := e.t.at("links").([]any)
	var out []any
	e.rows("link.", func(row string) {
		label, address := e.text(row+"label"), e.text(row+"url")
		if label == "" && address == "" {
			return
		}
		link := tree{}
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(row, "link."), "."))
		if n < len(had) {
			if old, ok := had[n].(map[string]any); ok {
				link = tree(maps.Clone(old))
			}
		}
		link.setText(label, "label")
		link.setText(address, "url")
		out = append(out, map[string]any(link))
	})
	e.t.set(out, "links")
}

func (e *entityEdit) compatibility() {
	for _, member := range []string{"services", "hardwaretypes", "imagetypes"} {
		e.t.setNames(e.names("compat."+member), "compatibility", member)
	}
	e.t.setNames(e.names("default.services"), "defaults", "services")
	for _, member := range []string{"provider", "hardwaretype", "imagetype"} {
		e.t.setText(e.text("default."+member), "defaults", member)
	}
	e.t.setText(e.text("default.dns"), "defaults", "dnsSuffix")
	text := e.text("config")
	value, valid := jsonValue(text)
	if _, object := value.(map[string]any); text == "" || valid && object {
		if text == "" {
			value = nil
		}
		e.t.set(value, "defaults", "config")
		return
	}
	e.typed["config"] = e.v.Get("config")
	e.wrong("defaults.config", "it has to be a JSON object, as {\"key\": \"value\"}")
}

// number sets a number, or what the person wrote instead, which the check then refuses.
func (e *entityEdit) number(text string, path ...string) {
	if have := e.t.at(path...); have != nil && plainValue(have) == text {
		return
	}
	if n, err := strconv.Atoi(text); err == nil {
		e.t.set(json.Number(strconv.Itoa(n)), path...)
		return
	}
	e.t.set(text, path...)
}

func (e *entityEdit) constraints() {
	for _, member := range []string{"min", "max"} {
		e.number(e.text("size."+member), "constraints", "size", member)
	}
	for name, member := range map[string]string{"must": "mustcoexist", "cannot": "cantcoexist"} {
		var sets []any
		for _, line := range strings.Split(e.text(name), "\n") {
			var set []any
			for _, one := range splitNames(line) {
				set = append(set, one)
			}
			if len(set) > 0 {
				sets = append(sets, set)
			}
		}
		e.t.set(sets, "constraints", "layout", member)
	}
	before := tree{"m": maps.Clone(e.t.object("constraints", "services"))}
	out := map[string]any{}
	e.rows("limit.", func(row string) {
		service := e.text(row + "service")
		lo, hi := e.text(row+"min"), e.text(row+"max")
		hardware, image := e.names(row+"hardwaretypes"), e.names(row+"imagetypes")
		switch {
		case service == "" && lo+hi == "" && len(hardware)+len(image) == 0:
			return
		case service == "":
			e.wrong("constraints.services", "a row has limits, and no service: name the service, or empty the row")
			return
		case out[service] != nil:
			e.wrong("constraints.services."+service, "%s stands in two rows", service)
			return
		}
		limit := entityEdit{t: tree{}}
		if had := before.object("m", service); had != nil {
			limit.t = tree(had)
		}
		limit.number(lo, "quantities", "min")
		limit.number(hi, "quantities", "max")
		limit.t.setNames(hardware, "hardwaretypes")
		limit.t.setNames(image, "imagetypes")
		out[service] = map[string]any(limit.t)
	})
	e.t.set(out, "constraints", "services")
}

// lease sets a time. What means the same stays as it is written.
func (e *entityEdit) lease(member string) {
	text := e.text("lease." + member)
	path := []string{"administration", "leaseduration", member}
	was, errWas := catalogue.ParseDuration(e.t.text(path...))
	is, errIs := catalogue.ParseDuration(text)
	if text != "" && errWas == nil && errIs == nil && was == is {
		return
	}
	e.t.setText(text, path...)
}

// secretWords are in the names of fields that may be secret, of plug-ins that nobody has described.
var secretWords = regexp.MustCompile(`(?i)passw|secret|token|credential|private|api_?key`)

// withoutSecrets takes the secrets that a person typed out of the JSON of a provider, and reports whether there were
// any. It also works on what is no JSON, because somebody may have forgotten a comma.
func withoutSecrets(text string, all *catalogue.Catalogue) (string, bool) {
	names := map[string]bool{}
	for _, t := range all.ProviderTypes {
		for name, d := range t.Parameters.Admin.Fields {
			if d.Secret() {
				names[name] = true
			}
		}
	}
	found := false
	secret := func(name string) bool { return names[name] || secretWords.MatchString(name) }
	out := memberText.ReplaceAllStringFunc(text, func(member string) string {
		parts := memberText.FindStringSubmatch(member)
		name := parts[1]
		if decoded, ok := jsonValue(`"` + name + `"`); ok {
			name, _ = decoded.(string)
		}
		if !secret(name) || parts[3] == catalogue.Hidden || parts[3] == "" {
			return member
		}
		found = true
		return `"` + parts[1] + `"` + parts[2] + `""`
	})
	t := treeOf([]byte(out))
	rest := false // secrets that are no texts
	for name, value := range t.object("provisioner") {
		if secret(name) && !isHidden(value) && value != "" && value != nil {
			t.object("provisioner")[name], rest = "", true
		}
	}
	if rest {
		return string(encoded(map[string]any(t), "  ")), true
	}
	return out, found
}

// memberText is a member of a JSON object whose value is a text, which may lack its end.
var memberText = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"(\s*:\s*)"((?:[^"\\]|\\.)*)"?`)
