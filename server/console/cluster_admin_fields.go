package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// Kinds of fields in the forms of the catalogue.
const (
	textField   = "text"
	areaField   = "area"
	selectField = "select"
	secretField = "secret" // never has its value
	checksField = "checks" // a list of names, one box each
)

// entityField is a field of a form, with what is wrong with it.
type entityField struct {
	ID, Name, Label, Help string
	Kind                  string
	Value                 string
	Options               []choice
	Rows                  int
	Wide, Mono            bool
	Set                   bool   // of a secret: there is one
	Area                  bool   // of a secret: it may have several lines
	Refresh               bool   // other fields depend on it
	List                  string // the id of a list of suggestions
	Errors                []string
	path                  string // of the value in the JSON, as catalogue.Problem has it
}

// entityTable is a part of a form with rows that are alike.
type entityTable struct {
	Title, Help string
	Heads       []string
	Rows        [][]*entityField
	ID          string   // of the list of suggestions; empty: there is none
	Known       []string // the suggestions
}

// entityGroup is a part of a section.
type entityGroup struct {
	Title  string
	Fields []*entityField
}

// entitySection is a tab of a form.
type entitySection struct {
	ID, Title, Help string
	Fields          []*entityField
	Groups          []entityGroup
	Tables          []entityTable
	Errors          int
}

// entityForm makes the form of an entity from its JSON.
type entityForm struct {
	t        tree
	all      *catalogue.Catalogue
	fresh    bool              // the entity is new, and may be given a name
	typed    map[string]string // by name of field: text that the JSON cannot have
	more     int               // empty rows in each table
	sections []*entitySection
	serial   int
}

// hasForm reports whether a kind can be edited by a form.
func hasForm(kind catalogue.Kind) bool {
	return kind != catalogue.ProviderTypes && kind != catalogue.AutomatorTypes
}

// build makes the sections.
func (f *entityForm) build(kind catalogue.Kind) []*entitySection {
	switch kind {
	case catalogue.Providers:
		f.head("Provider")
		f.provider()
	case catalogue.HardwareTypes:
		f.head("Hardware type")
		f.providerMap("flavor", "Flavour")
	case catalogue.ImageTypes:
		f.head("Image type")
		f.providerMap("image", "Image", "sshuser", "SSH user")
	case catalogue.Services:
		f.head("General")
		f.dependencies()
		f.actions()
	case catalogue.PartialTemplates:
		s := f.head("General")
		s.Fields = append(s.Fields, f.of("immutable", "Values of its configuration", selectField, "immutable").
			options(f.t.text("immutable"), choice{Value: "", Text: "may be overridden by templates"},
				choice{Value: "true", Text: "may not be overridden"}))
		f.compatibility()
		f.defaults()
	case catalogue.Templates:
		s := f.head("General")
		s.Fields = append(s.Fields,
			f.of("parent", "Builds on the template", selectField, "parent.name").
				options(f.t.text("parent", "name"), f.named(catalogue.Templates, "none")...),
			f.checks("includes", "Includes the partial templates", catalogue.PartialTemplates, f.includes(),
				"includes"))
		f.links(s)
		f.compatibility()
		f.defaults()
		f.constraints()
		f.administration()
	}
	return f.sections
}

func (f *entityForm) section(id, title, help string) *entitySection {
	s := &entitySection{ID: id, Title: title, Help: help}
	f.sections = append(f.sections, s)
	return s
}

// of makes a field whose value is at a path in the JSON.
func (f *entityForm) of(name, label, kind, path string) *entityField {
	f.serial++
	e := &entityField{ID: "f" + strconv.Itoa(f.serial), Name: name, Label: label, Kind: kind, path: path}
	if kind == areaField {
		e.Rows, e.Wide = 3, true
	}
	if text, ok := f.typed[name]; ok {
		e.Value = text
	}
	return e
}

// value sets the value, unless the person typed what the JSON cannot have.
func (e *entityField) value(f *entityForm, text string) *entityField {
	if _, ok := f.typed[e.Name]; !ok {
		e.Value = text
	}
	return e
}

func (e *entityField) help(text string) *entityField {
	e.Help = text
	return e
}

// options sets the options of a select; a value that is none of them is added.
func (e *entityField) options(value string, all ...choice) *entityField {
	found := false
	for _, o := range all {
		o.Selected = o.Value == value
		found = found || o.Selected
		e.Options = append(e.Options, o)
	}
	if !found {
		e.Options = append(e.Options, choice{value, value + " (does not exist)", true})
	}
	e.Value = value
	return e
}

// named returns the names of a kind as options, after one for none.
func (f *entityForm) named(kind catalogue.Kind, none string) []choice {
	out := []choice{{Value: "", Text: none}}
	for _, e := range f.all.All() {
		if e.Kind() == kind {
			name := catalogue.HeadOf(e).Name
			out = append(out, choice{Value: name, Text: name})
		}
	}
	return out
}

// manyNames is from how many names on a list is a text and not boxes.
const manyNames = 60

// checks makes a field for a list of names of a kind.
func (f *entityForm) checks(name, label string, kind catalogue.Kind, have []string, path string) *entityField {
	e := f.of(name, label, checksField, path)
	e.Wide = true
	known := f.named(kind, "")[1:]
	if len(known) > manyNames {
		e.Kind, e.Rows = areaField, 3
		return e.value(f, strings.Join(have, ", ")).help("Names, separated by commas.")
	}
	seen := map[string]bool{}
	for _, o := range known {
		o.Selected = slices.Contains(have, o.Value)
		seen[o.Value] = true
		e.Options = append(e.Options, o)
	}
	for _, n := range have {
		if !seen[n] {
			e.Options = append(e.Options, choice{n, n + " (does not exist)", true})
		}
	}
	if len(e.Options) == 0 {
		e.Help = "The catalogue has no " + kind.Noun() + " yet."
	}
	return e
}

func (f *entityForm) list(name, label, help string, path ...string) *entityField {
	return f.of(name, label, textField, strings.Join(path, ".")).value(f, strings.Join(f.t.names(path...), ", ")).
		help(help)
}

func (f *entityForm) head(title string) *entitySection {
	s := f.section("general", title, "")
	if f.fresh {
		s.Fields = append(s.Fields, f.of("name", "Name", textField, "name").value(f, f.t.text("name")).
			help("Letters, digits, '.', '_' and '-'. Others refer to it by its name, so it stays."))
	}
	s.Fields = append(s.Fields,
		f.of("label", "Label", textField, "label").value(f, f.t.text("label")).help("What people see in lists."),
		f.of("icon", "Icon", textField, "icon").value(f, f.t.text("icon")).help("Kept for other programs."),
		f.of("description", "Description", areaField, "description").value(f, f.t.text("description")))
	return s
}

func (f *entityForm) provider() {
	s := f.sections[0]
	kind := f.t.text("providertype")
	e := f.of("providertype", "Type", selectField, "providertype").
		options(kind, f.named(catalogue.ProviderTypes, "choose one")...)
	e.Refresh = true
	s.Fields = append(s.Fields, e.help("It decides which fields there are."))
	var p catalogue.Parameters
	if t := f.all.ProviderTypes[kind]; t != nil {
		p = t.Parameters.Admin
		s.Help = t.Description
	}
	have := f.t.object("provisioner")
	fields := f.section("fields", "Fields of the type", "")
	if kind == "" {
		fields.Help = "Choose a type, and show its fields."
	}
	fields.Fields = f.plugin("field.", "provisioner", p, have)
	fields.Help += requiredText(p)
}

// requiredText says which fields a plug-in needs.
func requiredText(p catalogue.Parameters) string {
	var sets []string
	for _, set := range p.Required {
		if len(set) == 0 {
			return ""
		}
		var labels []string
		for _, name := range set {
			labels = append(labels, cmp.Or(p.Fields[name].Label, name))
		}
		sets = append(sets, strings.Join(labels, ", "))
	}
	if len(sets) == 0 {
		return ""
	}
	return "Needed: " + strings.Join(sets, "; or ") + "."
}

// plugin makes the fields of a plug-in, those that are required first, and of values that it does not know.
func (f *entityForm) plugin(prefix, path string, p catalogue.Parameters, have map[string]any) (out []*entityField) {
	required := map[string]bool{}
	for _, set := range p.Required {
		for _, name := range set {
			required[name] = true
		}
	}
	names := sortedNames(p.Fields)
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case required[a] == required[b]:
			return 0
		case required[a]:
			return -1
		}
		return 1
	})
	for _, name := range names {
		out = append(out, f.pluginField(prefix+name, path+"."+name, name, p.Fields[name], have[name]))
	}
	for _, name := range sortedNames(have) {
		if _, known := p.Fields[name]; !known {
			out = append(out, f.pluginField(prefix+name, path+"."+name, name, catalogue.Field{}, have[name]))
		}
	}
	return out
}

func (f *entityForm) pluginField(name, path, key string, d catalogue.Field, have any) *entityField {
	e := f.of(name, cmp.Or(d.Label, key), textField, path)
	if e.Help = strings.TrimSuffix(strings.TrimSpace(d.Tip), "."); e.Help != "" {
		e.Help += "."
	}
	if d.Override {
		e.Help = strings.TrimSpace(e.Help + " Users may choose another.")
	}
	standard := plainRaw(d.Default)
	raw, _ := json.Marshal(have)
	switch {
	case d.Secret() || catalogue.IsHidden(raw):
		e.Kind, e.Set, e.Area = secretField, catalogue.IsHidden(raw), d.Type == "file" || d.Type == "json"
		e.Value = ""
		return e
	case d.Type == "checkbox":
		none := "not set"
		if standard != "" {
			none = "default: " + yesNo(standard)
		}
		e.Kind = selectField
		return e.options(strings.ToLower(plainValue(have)), choice{Value: "", Text: none},
			choice{Value: "true", Text: "yes"}, choice{Value: "false", Text: "no"})
	case d.Type == "select":
		none := "not set"
		if standard != "" {
			none = "default: " + standard
		}
		all := []choice{{Value: "", Text: none}}
		for _, o := range d.Options {
			all = append(all, choice{Value: plainRaw(o), Text: plainRaw(o)})
		}
		e.Kind = selectField
		return e.options(plainValue(have), all...)
	case d.Type == "json" || d.Type == "file" || strings.Contains(plainValue(have), "\n"):
		e.Kind, e.Rows, e.Wide, e.Mono = areaField, 4, true, true
	}
	if standard != "" {
		e.Help = strings.TrimSpace(e.Help + " Default: " + standard + ".")
	}
	return e.value(f, plainValue(have))
}

func yesNo(text string) string {
	if strings.EqualFold(text, "true") {
		return "yes"
	}
	return "no"
}

func plainRaw(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	value, _ := jsonValue(string(raw))
	return plainValue(value)
}

// providerMap makes the table of what a hardware or image type is at each provider. keys are pairs of a member and its
// title.
func (f *entityForm) providerMap(keys ...string) {
	s := f.section("map", "At the providers", "What this is called at each provider, or at all providers of a type. "+
		"A pool has machines that exist already, and needs nothing.")
	table := entityTable{
		Title: "Providers", Help: "Other values are name=value, one on each line. To take a row away, empty it.",
	}
	table.Heads = append(table.Heads, "Provider or type")
	for i := 1; i < len(keys); i += 2 {
		table.Heads = append(table.Heads, keys[i])
	}
	table.Heads = append(table.Heads, "Other values")
	table.ID, table.Known = "known-providers", append(sortedNames(f.all.Providers), sortedNames(f.all.ProviderTypes)...)
	rows := sortedNames(f.t.object("providermap"))
	for i := range len(rows) + f.more {
		row, provider := strconv.Itoa(i), ""
		var have map[string]any
		if i < len(rows) {
			provider = rows[i]
			have, _ = f.t.at("providermap", provider).(map[string]any)
		}
		path := "providermap." + provider
		if provider == "" {
			path = "-" // of no problem
		}
		label := func(text string) string { return fmt.Sprintf("%s, row %d", text, i+1) }
		first := f.of("row."+row+".provider", label("Provider or type"), textField, path).value(f, provider)
		first.List = table.ID
		fields := []*entityField{first}
		rest := map[string]any{}
		for name, value := range have {
			rest[name] = value
		}
		for k := 0; k < len(keys); k += 2 {
			fields = append(fields, f.of("row."+row+"."+keys[k], label(keys[k+1]), textField, path+"."+keys[k]).
				value(f, plainValue(have[keys[k]])))
			delete(rest, keys[k])
		}
		var others []string
		for _, name := range sortedNames(rest) {
			others = append(others, name+"="+plainValue(rest[name]))
		}
		more := f.of("row."+row+".more", label("Other values"), areaField, path+".*").
			value(f, strings.Join(others, "\n"))
		more.Rows = 1 + len(others)
		fields = append(fields, more)
		table.Rows = append(table.Rows, fields)
	}
	s.Tables = append(s.Tables, table)
}

func (f *entityForm) dependencies() {
	s := f.section("dependencies", "Dependencies", "Names of services, separated by commas. What a service requires "+
		"has to be on its cluster; what it uses only orders the two if both are.")
	s.Fields = []*entityField{
		f.list("provides", "Stands for", "Other names under which services may require this one.", "dependencies",
			"provides"),
		f.list("conflicts", "Conflicts with", "Never on the same cluster.", "dependencies", "conflicts"),
		f.list("install.requires", "To be installed, it requires", "", "dependencies", "install", "requires"),
		f.list("install.uses", "To be installed, it uses", "", "dependencies", "install", "uses"),
		f.list("runtime.requires", "To run, it requires", "", "dependencies", "runtime", "requires"),
		f.list("runtime.uses", "To run, it uses", "", "dependencies", "runtime", "uses"),
	}
}

func (f *entityForm) actions() {
	s := f.section("actions", "Actions", "What is done on a machine in each step, in this order. An action without an "+
		"automator does nothing.")
	for _, action := range catalogue.Actions {
		name, path := string(action), "provisioner.actions."+string(action)
		kind := f.t.text("provisioner", "actions", name, "type")
		e := f.of("action."+name+".type", name+": automator", selectField, path+".type").
			options(kind, f.named(catalogue.AutomatorTypes, "nothing")...)
		e.Refresh = true
		group := entityGroup{Title: name, Fields: []*entityField{e}}
		var p catalogue.Parameters
		if t := f.all.AutomatorTypes[kind]; t != nil {
			p.Required = t.Parameters.Admin.Required
			p.Fields = map[string]catalogue.Field{}
			for n, d := range t.Parameters.User.Fields {
				p.Fields[n] = d
			}
			for n, d := range t.Parameters.Admin.Fields {
				p.Fields[n] = d
			}
			for n, d := range p.Fields {
				if d.Secret() { // it may not stand in a service
					delete(p.Fields, n)
				}
			}
		}
		have := f.t.object("provisioner", "actions", name, "fields")
		for _, field := range f.plugin("action."+name+".field.", path+".fields", p, have) {
			field.Label = name + ": " + field.Label
			group.Fields = append(group.Fields, field)
		}
		s.Groups = append(s.Groups, group)
	}
}

func (f *entityForm) includes() (out []string) {
	list, _ := f.t.at("includes").([]any)
	for _, one := range list {
		if m, ok := one.(map[string]any); ok {
			out = append(out, plainValue(m["name"]))
		}
	}
	return out
}

func (f *entityForm) links(s *entitySection) {
	table := entityTable{
		Title: "Links", Heads: []string{"Label", "Address"},
		Help: "Shown with each cluster. The address may have macros, as http://%ip.service.web[0]%/.",
	}
	list, _ := f.t.at("links").([]any)
	for i := range len(list) + min(f.more, 2) {
		var link map[string]any
		if i < len(list) {
			link, _ = list[i].(map[string]any)
		}
		row, path := strconv.Itoa(i), fmt.Sprintf("links[%d]", i)
		table.Rows = append(table.Rows, []*entityField{
			f.of("link."+row+".label", fmt.Sprintf("Label of link %d", i+1), textField, path+".label").
				value(f, plainValue(link["label"])),
			f.of("link."+row+".url", fmt.Sprintf("Address of link %d", i+1), textField, path+".url").
				value(f, plainValue(link["url"])),
		})
	}
	s.Tables = append(s.Tables, table)
}

func (f *entityForm) compatibility() {
	s := f.section("compatibility", "Compatibility",
		"What clusters may have. No box of hardware or images: all of them.")
	s.Fields = []*entityField{
		f.checks("compat.services", "Services", catalogue.Services, f.t.names("compatibility", "services"),
			"compatibility.services"),
		f.checks("compat.hardwaretypes", "Hardware types", catalogue.HardwareTypes,
			f.t.names("compatibility", "hardwaretypes"), "compatibility.hardwaretypes"),
		f.checks("compat.imagetypes", "Image types", catalogue.ImageTypes, f.t.names("compatibility", "imagetypes"),
			"compatibility.imagetypes"),
	}
}

func (f *entityForm) defaults() {
	s := f.section("defaults", "Defaults", "What a cluster has unless its user chooses something else.")
	one := func(name, label, member string, kind catalogue.Kind) *entityField {
		return f.of(name, label, selectField, "defaults."+member).
			options(f.t.text("defaults", member), f.named(kind, "none")...)
	}
	config := f.of("config", "Configuration", areaField, "defaults.config").
		help("A JSON object that plug-ins get, with macros, as {\"db\": {\"host\": \"%host.service.mysql%\"}}.")
	config.Rows, config.Mono = 8, true
	if o := f.t.at("defaults", "config"); o != nil {
		config.value(f, string(encoded(o, "  ")))
	}
	s.Fields = []*entityField{
		f.checks("default.services", "Services", catalogue.Services, f.t.names("defaults", "services"),
			"defaults.services"),
		one("default.provider", "Provider", "provider", catalogue.Providers),
		one("default.hardwaretype", "Hardware type", "hardwaretype", catalogue.HardwareTypes),
		one("default.imagetype", "Image type", "imagetype", catalogue.ImageTypes),
		f.of("default.dns", "DNS suffix", textField, "defaults.dnsSuffix").value(f, f.t.text("defaults", "dnsSuffix")).
			help("The domain of the machines; local without one."),
		config,
	}
}

func (f *entityForm) constraints() {
	s := f.section("constraints", "Constraints", "")
	text := func(name, label, help string, path ...string) *entityField {
		return f.of(name, label, textField, "constraints."+strings.Join(path, ".")).
			value(f, f.t.text(append([]string{"constraints"}, path...)...)).help(help)
	}
	sets := func(name, label, help, member string) *entityField {
		var lines []string
		list, _ := f.t.at("constraints", "layout", member).([]any)
		for _, set := range list {
			lines = append(lines, strings.Join(tree{"x": set}.names("x"), ", "))
		}
		return f.of(name, label, areaField, "constraints.layout."+member).value(f, strings.Join(lines, "\n")).help(help)
	}
	s.Fields = []*entityField{
		text("size.min", "Least number of nodes", "1 without one.", "size", "min"),
		text("size.max", "Largest number of nodes", "No end without one.", "size", "max"),
		sets("must", "Together on a node", "One set of services on each line, as: datanode, nodemanager. A node with "+
			"one of a set has all of it.", "mustcoexist"),
		sets("cannot", "Never together on a node", "One set on each line. No node has all of a set.", "cantcoexist"),
	}
	table := entityTable{
		Title: "Services", Help: "On how many nodes a service is, and on which. To take a row away, empty it.",
		Heads: []string{"Service", "At least", "At most", "Hardware types", "Image types"},
		ID:    "known-services", Known: sortedNames(f.all.Services),
	}
	rows := sortedNames(f.t.object("constraints", "services"))
	for i := range len(rows) + f.more {
		service := ""
		if i < len(rows) {
			service = rows[i]
		}
		path := "constraints.services." + service
		if service == "" {
			path = "-"
		}
		at := func(member ...string) []string {
			return append([]string{"constraints", "services", service}, member...)
		}
		cell := func(member, label, path, value string) *entityField {
			return f.of(fmt.Sprintf("limit.%d.%s", i, member), fmt.Sprintf("%s, row %d", label, i+1), textField, path).
				value(f, value)
		}
		first := cell("service", "Service", path, service)
		first.List = table.ID
		table.Rows = append(table.Rows, []*entityField{
			first,
			cell("min", "At least", path+".quantities.min", f.t.text(at("quantities", "min")...)),
			cell("max", "At most", path+".quantities.max", f.t.text(at("quantities", "max")...)),
			cell("hardwaretypes", "Hardware types", path+".hardwaretypes",
				strings.Join(f.t.names(at("hardwaretypes")...), ", ")),
			cell("imagetypes", "Image types", path+".imagetypes", strings.Join(f.t.names(at("imagetypes")...), ", ")),
		})
	}
	s.Tables = append(s.Tables, table)
}

func (f *entityForm) administration() {
	s := f.section("administration", "Administration",
		"How long clusters live. A number with s, m, h or d, as 2d; 0 or nothing is without end.")
	for _, one := range []struct{ member, label, help string }{
		{"initial", "At first", "What a new cluster gets; its user may ask for less."},
		{"max", "At most", "From its beginning, however often it is extended."},
		{"step", "Each extension", "By how much a user may extend it at a time."},
	} {
		text := f.t.text("administration", "leaseduration", one.member)
		if d, err := catalogue.ParseDuration(text); err == nil {
			text = leaseText(time.Duration(d))
		}
		s.Fields = append(s.Fields, f.of("lease."+one.member, one.label, textField,
			"administration.leaseduration."+one.member).value(f, text).help(one.help))
	}
}

// leaseText writes a length of time as catalogue.ParseDuration reads it.
func leaseText(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// place puts problems beside their fields, and returns all of them with links to the fields.
func (f *entityForm) place(problems []catalogue.Problem) (out []shownProblem) {
	for _, p := range problems {
		best, in := (*entityField)(nil), (*entitySection)(nil)
		for _, s := range f.sections {
			s.each(func(e *entityField) {
				if e.covers(p.Field) && (best == nil || len(e.path) > len(best.path)) {
					best, in = e, s
				}
			})
		}
		shown := shownProblem{Field: p.Field, Text: p.Text}
		if best != nil {
			best.Errors = append(best.Errors, p.Text)
			in.Errors++
			shown.ID, shown.Field = best.ID, best.Label
		} else if s := f.nearest(p.Field); s != nil {
			s.Errors++
			shown.ID = s.ID
			s.missing(p)
		}
		out = append(out, shown)
	}
	return out
}

// nearest returns the section that has fields beside or below a path, as "provisioner" of a provider.
func (f *entityForm) nearest(path string) (out *entitySection) {
	for _, s := range f.sections {
		s.each(func(e *entityField) {
			if out == nil && path != "" && strings.HasPrefix(e.path, path+".") {
				out = s
			}
		})
	}
	return out
}

// missing marks the fields that a problem of all of them names, as the values that a plug-in needs.
func (s *entitySection) missing(p catalogue.Problem) {
	named := splitNames(p.Text)
	s.each(func(e *entityField) {
		name, below := strings.CutPrefix(e.path, p.Field+".")
		if below && e.Value == "" && slices.Contains(named, name) {
			e.Errors = append(e.Errors, "It has to be given.")
		}
	})
}

func (s *entitySection) each(do func(*entityField)) {
	for _, e := range s.Fields {
		do(e)
	}
	for _, g := range s.Groups {
		for _, e := range g.Fields {
			do(e)
		}
	}
	for _, t := range s.Tables {
		for _, row := range t.Rows {
			for _, e := range row {
				do(e)
			}
		}
	}
}

// covers reports whether a problem at a path is about the field.
func (e *entityField) covers(path string) bool {
	rest, ok := strings.CutPrefix(path, e.path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// shownProblem is a problem in the list above a form.
type shownProblem struct {
	ID    string // of the field; empty: it is about the whole
	Field string
	Text  string
}
