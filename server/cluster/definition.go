package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/macro"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/plan"
	"ordain.dev/ordain/server/cluster/solve"
)

// Definition is a manifest with all that it refers to.
type Definition struct {
	Manifest  *manifest.Manifest
	Catalogue *catalogue.Catalogue // in the versions that the manifest pins
	Template  *catalogue.Template  // without parents and includes
	Provider  *catalogue.Provider
	Type      *catalogue.PluginType // of the provider
	Config    json.RawMessage       // object: the template's and the manifest's, with macros
}

// Define looks up what a manifest refers to. Invalid: something does not exist.
func Define(
	ctx context.Context, catalogues Catalogues, project uuid.UUID, m *manifest.Manifest,
) (*Definition, error) {
	c, err := catalogues.Pinned(ctx, project, m.Catalogue)
	if err != nil {
		return nil, err
	}
	d := &Definition{Manifest: m, Catalogue: c}
	if d.Template, err = c.Resolve(m.Template); err != nil {
		return nil, invalid("the template %s cannot be used: %s", m.Template, err)
	}
	name := d.ProviderName()
	if d.Provider = c.Providers[name]; d.Provider == nil {
		return nil, invalid("there is no provider %q; there are %s", name, names(c.Providers))
	}
	if d.Type = c.ProviderTypes[d.Provider.ProviderType]; d.Type == nil {
		return nil, invalid("the provider %s is of the type %q, which does not exist", name, d.Provider.ProviderType)
	}
	for _, s := range m.Services {
		if c.Services[s] == nil {
			return nil, invalid("there is no service %q; the template %s allows %s", s, m.Template,
				strings.Join(d.Template.Compatibility.Services, ", "))
		}
	}
	d.Config, err = mergeConfig(d.Template.Defaults.Config, m.Config)
	return d, err
}

func invalid(format string, args ...any) error {
	return fault.New("cluster", fault.Invalid, fmt.Sprintf(format, args...))
}

// names lists names for people, and only the first of many.
func names[V any](of map[string]V) string {
	all := slices.Sorted(maps.Keys(of))
	if len(all) == 0 {
		return "none"
	}
	if len(all) > 20 {
		return strings.Join(all[:20], ", ") + " and others"
	}
	return strings.Join(all, ", ")
}

// mergeConfig puts the keys of a cluster over those of its template.
func mergeConfig(template map[string]json.RawMessage, own map[string]any) (json.RawMessage, error) {
	merged := maps.Clone(template)
	if merged == nil {
		merged = map[string]json.RawMessage{}
	}
	for key, value := range own {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, invalid("config.%s cannot be written as JSON: %s", key, err)
		}
		merged[key] = text
	}
	return json.Marshal(merged)
}

// ProviderName is the provider of the manifest, or the template's.
func (d *Definition) ProviderName() string {
	if d.Manifest.Provider != "" {
		return d.Manifest.Provider
	}
	return d.Template.Defaults.Provider
}

// request is the solver's question for the manifest.
func (d *Definition) request() solve.Request {
	m := d.Manifest
	existing := make([]solve.Node, 0, len(m.Nodes))
	for _, n := range m.Nodes {
		existing = append(existing, solve.Node{
			Number: n.Number, Services: n.Services, HardwareType: n.HardwareType, ImageType: n.ImageType,
		})
	}
	return solve.Request{
		Template: d.Template, Catalogue: d.Catalogue, Size: m.Size, Services: m.Services, Provider: d.ProviderName(),
		HardwareType: m.HardwareType, ImageType: m.ImageType, Existing: existing, Next: m.Next,
	}
}

// solve sets the nodes of the manifest. Those that fit stay as they are.
func (d *Definition) solve(ctx context.Context) error {
	nodes, err := solve.Layout(ctx, d.request())
	if err != nil {
		return fault.Wrap("cluster.solve", fault.Invalid, err).
			Say("there is no layout for the cluster " + d.Manifest.Name)
	}
	m := d.Manifest
	known := map[int]string{}
	for _, n := range m.Nodes {
		known[n.Number] = n.Hostname
	}
	suffix := m.DNSSuffix
	if suffix == "" {
		suffix = d.Template.Defaults.DNSSuffix
	}
	m.Nodes = nil
	for _, n := range nodes {
		host := known[n.Number]
		if host == "" {
			host = manifest.Hostname(m.Name, n.Number, suffix)
		}
		m.Nodes = append(m.Nodes, manifest.Node{
			Number: n.Number, Hostname: host, HardwareType: n.HardwareType, ImageType: n.ImageType,
			Services: n.Services,
		})
		m.Next = max(m.Next, n.Number+1)
	}
	return nil
}

// wrong says what is wrong with the nodes of the manifest as they are.
func (d *Definition) wrong() []string {
	if len(d.Manifest.Nodes) == 0 {
		return []string{"the cluster has no nodes yet"}
	}
	return solve.Check(d.request(), d.request().Existing)
}

// pin sets the versions of the manifest to those of the definition: of all that the cluster is made from.
func (d *Definition) pin() {
	pins := manifest.Pins{}
	put := func(e catalogue.Entity) {
		head := catalogue.HeadOf(e)
		if head.Version == 0 { // built in, and not kept
			return
		}
		if pins[e.Kind()] == nil {
			pins[e.Kind()] = map[string]int{}
		}
		pins[e.Kind()][head.Name] = head.Version
	}
	d.pinTemplates(d.Manifest.Template, put, map[string]bool{})
	put(d.Provider)
	put(d.Type)
	for _, n := range d.Manifest.Nodes {
		if h := d.Catalogue.HardwareTypes[n.HardwareType]; h != nil {
			put(h)
		}
		if i := d.Catalogue.ImageTypes[n.ImageType]; i != nil {
			put(i)
		}
	}
	for _, name := range d.Manifest.Services {
		put(d.Catalogue.Services[name])
	}
	for _, a := range plan.Automators(d.Manifest.Services, d.Catalogue.Services) {
		if t := d.Catalogue.AutomatorTypes[a]; t != nil {
			put(t)
		}
	}
	d.Manifest.Catalogue = pins
}

// pinTemplates pins a template with its parents and includes.
func (d *Definition) pinTemplates(name string, put func(catalogue.Entity), seen map[string]bool) {
	t := d.Catalogue.Templates[name]
	if t == nil || seen[name] {
		return
	}
	seen[name] = true
	put(t)
	for _, include := range t.Includes {
		if p := d.Catalogue.Partials[include.Name]; p != nil {
			put(p)
		}
	}
	if t.Parent != nil {
		d.pinTemplates(t.Parent.Name, put, seen)
	}
}

// digest tells apart the configurations of a service: it changes when the service has to be configured again. What
// macros are replaced with is not known before the machines are made, so the nodes that they name stand for it.
func (d *Definition) digest(service string) string {
	sum := sha256.New()
	actions, _ := json.Marshal(d.Catalogue.Services[service].Provisioner.Actions) // decoded from JSON before
	sum.Write(d.Config)
	sum.Write(actions)
	fmt.Fprintf(sum, "restarts %d\n", d.Manifest.Restarts[service])
	for _, named := range macro.Services(string(d.Config) + string(actions)) {
		fmt.Fprintf(sum, "%s on", named)
		for _, n := range d.Manifest.Nodes {
			if slices.Contains(n.Services, named) {
				fmt.Fprintf(sum, " %d", n.Number)
			}
		}
		fmt.Fprintln(sum)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// checkFields says which fields of the provider's users are missing. given are the names of sensitive ones that were
// given.
func (d *Definition) checkFields(given []string) error {
	fields, required, err := d.Catalogue.UserFields(d.Manifest.Template, d.ProviderName())
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.Manifest.Fields)) {
		f, known := fields[name]
		if !known {
			return invalid(
				"the provider %s does not ask users for the field %q; it asks for %s",
				d.ProviderName(),
				name,
				names(fields),
			)
		}
		if f.Secret() {
			return invalid("the field %q is secret and must not stand in Git", name)
		}
	}
	has := func(name string) bool {
		_, plain := d.Manifest.Fields[name]
		return plain || slices.Contains(given, name) || len(fields[name].Default) > 0
	}
	var missing []string
	for i, set := range required {
		var lacks []string
		for _, name := range set {
			if !has(name) {
				lacks = append(lacks, name)
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		if i == 0 || len(lacks) < len(missing) {
			missing = lacks
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &MissingFields{Provider: d.ProviderName(), Fields: missing}
}

// MissingFields says which fields of the provider its user has to give.
type MissingFields struct {
	Provider string
	Fields   []string
}

func (m *MissingFields) Error() string {
	return fmt.Sprintf("the provider %s needs these fields: %s", m.Provider, strings.Join(m.Fields, ", "))
}
