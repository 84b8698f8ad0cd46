package catalogue

import (
	"encoding/json"
	"time"
)

// Kind is a kind of entity, named as its collection in the API is.
type Kind string

// The kinds. An entity may refer only to entities of the kinds before it, except that templates refer to partial ones.
const (
	ProviderTypes    Kind = "providertypes"
	AutomatorTypes   Kind = "automatortypes"
	Providers        Kind = "providers"
	HardwareTypes    Kind = "hardwaretypes"
	ImageTypes       Kind = "imagetypes"
	Services         Kind = "services"
	PartialTemplates Kind = "partialtemplates"
	Templates        Kind = "clustertemplates"
)

// Kinds are all kinds, those first that others refer to.
var Kinds = []Kind{
	ProviderTypes, AutomatorTypes, Providers, HardwareTypes, ImageTypes, Services, PartialTemplates, Templates,
}

// Head is what all entities have. Names consist of letters, digits, '.', '_' and '-'.
type Head struct {
	Name        string `json:"name"`
	Label       string `json:"label,omitempty"`
	Description string `json:"description,omitempty"`
	Icon        string `json:"icon,omitempty"`
	Version     int    `json:"version,omitempty"` // from 1; 0 before it is kept
}

// Entity is one of *PluginType, *Provider, *HardwareType, *ImageType, *Service, *Partial and *Template.
type Entity interface {
	Kind() Kind
	head() *Head
}

// HeadOf returns the name, version and so on of an entity.
func HeadOf(e Entity) Head { return *e.head() }

func (h *Head) head() *Head { return h }

// Field is a field that a plug-in asks an administrator or a user for.
type Field struct {
	Label     string            `json:"label,omitempty"`
	Type      string            `json:"type"` // text, password, select, checkbox, file, json (a text or a value)
	Tip       string            `json:"tip,omitempty"`
	Options   []json.RawMessage `json:"options,omitempty"` // of a select
	Default   json.RawMessage   `json:"default,omitempty"`
	Override  bool              `json:"override,omitempty"`  // users may change an administrator's value
	Sensitive bool              `json:"sensitive,omitempty"` // sealed, never shown, never in Git; passwords always are
}

// Secret reports whether the value of the field is to be sealed.
func (f Field) Secret() bool { return f.Sensitive || f.Type == "password" }

// Parameters are the fields that a plug-in has for one group of people. One of the sets in Required has to be given.
type Parameters struct {
	Fields   map[string]Field `json:"fields,omitempty"`
	Required [][]string       `json:"required,omitempty"`
}

// ResourceType is a type of files that a plug-in uses, as ssh_keys or cookbooks.
type ResourceType struct {
	Format      string `json:"format"`                // file or archive
	Permissions string `json:"permissions,omitempty"` // octal, as 0400
}

// PluginType describes a provider plug-in or an automator plug-in.
type PluginType struct {
	Head
	Automator     bool                    `json:"-"` // else it is a provider plug-in
	Parameters    PluginParameters        `json:"parameters"`
	ResourceTypes map[string]ResourceType `json:"resourceTypes,omitempty"`
}

// PluginParameters has the fields of administrators and of users.
type PluginParameters struct {
	Admin Parameters `json:"admin"`
	User  Parameters `json:"user"`
}

// Kind is ProviderTypes or AutomatorTypes.
func (p *PluginType) Kind() Kind {
	if p.Automator {
		return AutomatorTypes
	}
	return ProviderTypes
}

// Provider is a place that has machines, with the values of its plug-in's administrator fields.
type Provider struct {
	Head
	ProviderType string                     `json:"providertype"`
	Provisioner  map[string]json.RawMessage `json:"provisioner,omitempty"`
}

// Kind is Providers.
func (*Provider) Kind() Kind { return Providers }

// HardwareType is a size of machine: for each provider (or provider type) that has it, its "flavor" and other values.
type HardwareType struct {
	Head
	ProviderMap map[string]map[string]string `json:"providermap"`
}

// Kind is HardwareTypes.
func (*HardwareType) Kind() Kind { return HardwareTypes }

// ImageType is an operating system: for each provider (or provider type) that has it, its "image" and "sshuser".
type ImageType struct {
	Head
	ProviderMap map[string]map[string]string `json:"providermap"`
}

// Kind is ImageTypes.
func (*ImageType) Kind() Kind { return ImageTypes }

// Action is a step of the life of a service on a node.
type Action string

// The actions of services, in their order on a node.
const (
	Install    Action = "install"
	Configure  Action = "configure"
	Initialize Action = "initialize"
	Start      Action = "start"
	Stop       Action = "stop"
	Remove     Action = "remove"
)

// Actions are all actions of services.
var Actions = []Action{Install, Configure, Initialize, Start, Stop, Remove}

// Dependencies of one phase: those required have to be on the cluster, and both are done first if they are.
type Dependencies struct {
	Requires []string `json:"requires,omitempty"`
	Uses     []string `json:"uses,omitempty"`
}

// ServiceDependencies say what a service needs, stands for, and does not tolerate on its cluster.
type ServiceDependencies struct {
	Provides  []string     `json:"provides,omitempty"`
	Conflicts []string     `json:"conflicts,omitempty"`
	Install   Dependencies `json:"install"` // orders install and, reversed, remove
	Runtime   Dependencies `json:"runtime"` // orders initialize and start and, reversed, stop
}

// ActionOf is how an action of a service is carried out: by an automator type, with its fields.
type ActionOf struct {
	Type   string                     `json:"type"`
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
}

// Service is software on a node.
type Service struct {
	Head
	Dependencies ServiceDependencies `json:"dependencies"`
	Provisioner  struct {
		Actions map[Action]ActionOf `json:"actions,omitempty"`
	} `json:"provisioner"`
}

// Kind is Services.
func (*Service) Kind() Kind { return Services }

// Compatibility are lists of what may be used; an empty list of hardware or image types allows all.
type Compatibility struct {
	HardwareTypes []string `json:"hardwaretypes,omitempty"`
	ImageTypes    []string `json:"imagetypes,omitempty"`
	Services      []string `json:"services,omitempty"`
}

// Defaults are what a cluster has unless its user says otherwise.
type Defaults struct {
	Services     []string                   `json:"services,omitempty"`
	Provider     string                     `json:"provider,omitempty"`
	HardwareType string                     `json:"hardwaretype,omitempty"`
	ImageType    string                     `json:"imagetype,omitempty"`
	DNSSuffix    string                     `json:"dnsSuffix,omitempty"`
	Config       map[string]json.RawMessage `json:"config,omitempty"`
}

// Range is a number of nodes. Max 0 has no end.
type Range struct {
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
}

// ServiceConstraint limits the nodes of a service; empty lists allow all.
type ServiceConstraint struct {
	HardwareTypes []string `json:"hardwaretypes,omitempty"`
	ImageTypes    []string `json:"imagetypes,omitempty"`
	Quantities    *Range   `json:"quantities,omitempty"`
}

// Constraints limit the layouts of a template.
type Constraints struct {
	Size   Range `json:"size"`
	Layout struct {
		// MustCoexist: a node with one of a set has all of the set that are on the cluster. CantCoexist: no node has
		// all of a set.
		MustCoexist [][]string `json:"mustcoexist,omitempty"`
		CantCoexist [][]string `json:"cantcoexist,omitempty"`
	} `json:"layout"`
	Services map[string]ServiceConstraint `json:"services,omitempty"`
}

// Lease says how long clusters live; 0 is without end. The JSON has milliseconds, or texts such as "2d".
type Lease struct {
	Initial Duration `json:"initial"`
	Max     Duration `json:"max"`
	Step    Duration `json:"step"`
}

// Duration is a time.Duration that is milliseconds in JSON, and may be read from texts with s, m, h or d.
type Duration time.Duration

// Reference names another template.
type Reference struct {
	Name string `json:"name"`
}

// Link is shown with a cluster; its address may have macros.
type Link struct {
	Label string `json:"label"`
	URL   string `json:"url"`
}

// Partial is a part that templates include. Keys of the configuration of an immutable one may not be overridden.
type Partial struct {
	Head
	Immutable     bool          `json:"immutable,omitempty"`
	Compatibility Compatibility `json:"compatibility"`
	Defaults      Defaults      `json:"defaults"`
}

// Kind is PartialTemplates.
func (*Partial) Kind() Kind { return PartialTemplates }

// Template says which clusters there may be.
type Template struct {
	Head
	Compatibility  Compatibility `json:"compatibility"`
	Defaults       Defaults      `json:"defaults"`
	Constraints    Constraints   `json:"constraints"`
	Administration struct {
		Lease Lease `json:"leaseduration"`
	} `json:"administration"`
	Parent   *Reference  `json:"parent,omitempty"`
	Includes []Reference `json:"includes,omitempty"`
	Links    []Link      `json:"links,omitempty"`

	leaseGiven []string // which members of the lease stand in the text: 0 overrides what a parent says
}

// Kind is Templates.
func (*Template) Kind() Kind { return Templates }

// MaxSize is how many nodes a cluster has at most.
const MaxSize = 10_000

// Catalogue is all that a project may use: its own entities, and shared ones where it has none of the same name.
// It is not changed once it is made.
type Catalogue struct {
	ProviderTypes  map[string]*PluginType
	AutomatorTypes map[string]*PluginType
	Providers      map[string]*Provider
	HardwareTypes  map[string]*HardwareType
	ImageTypes     map[string]*ImageType
	Services       map[string]*Service
	Partials       map[string]*Partial
	Templates      map[string]*Template
}

// Problem is something wrong with an entity, with the path of the field that has it, as "constraints.size.max".
type Problem struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}
