package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/solve"
)

// templateCalls are about templates of clusters beyond their JSON.
func (s *server) templateCalls(c *calls) {
	const one = "/{kind}/{name}" // the router cannot tell /clustertemplates/{name}/form from other calls with a kind
	inCatalogue(c, http.MethodPost, "/clustertemplates/try", "check a template that is not kept, and with "+
		"numMachines solve it: the nodes, or the reasons why there are none.", seeCatalogue, s.tryTemplate)
	inCatalogue(c, http.MethodGet, one+"/resolved", "show a template (the kind is clustertemplates) with its "+
		"parents and includes merged into it.",
		seeCatalogue, s.getResolvedTemplate)
	inCatalogue(c, http.MethodGet, one+"/form", "show what a user is asked for to make a cluster of a template (the "+
		"kind is "+
		"clustertemplates).",
		seeCatalogue, s.getTemplateForm)
}

type trial struct {
	Template     map[string]any `arg:"template,required"`
	Size         *int           `arg:"numMachines"`
	Services     []string       `arg:"services"`
	Provider     string         `arg:"provider"`
	HardwareType string         `arg:"hardwaretype"`
	ImageType    string         `arg:"imagetype"`
}

// tried is a template without parents and includes. Nodes and reasons are null if nothing was solved.
type tried struct {
	Template json.RawMessage `json:"template"`
	Nodes    *[]triedNode    `json:"nodes"`
	Reasons  *[]string       `json:"reasons"`
	Hint     *string         `json:"hint"`
}

type triedNode struct {
	Number       int      `json:"number"`
	HardwareType string   `json:"hardwaretype"`
	ImageType    string   `json:"imagetype"`
	Services     []string `json:"services"`
}

// maxSolve is how long a template is tried.
const maxSolve = 10 * time.Second

func (s *server) tryTemplate(ctx context.Context, project intent.ProjectID, a trial) (tried, error) {
	service, err := s.catalogueService()
	if err != nil {
		return tried{}, err
	}
	text, err := json.Marshal(a.Template)
	if err != nil {
		return tried{}, invalid("the template cannot be written as JSON: %v", err)
	}
	t, err := service.Try(ctx, project, text)
	if err != nil {
		return tried{}, err
	}
	out := tried{}
	if out.Template, err = json.Marshal(t); err != nil || a.Size == nil {
		return out, err
	}
	if *a.Size < 1 || *a.Size > catalogue.MaxSize {
		return out, invalid("numMachines is %d, and may be 1 to %d", *a.Size, catalogue.MaxSize)
	}
	c, err := service.Catalogue(ctx, project)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxSolve)
	defer cancel()
	nodes, err := solve.Layout(ctx, solve.Request{
		Template: t, Catalogue: c.With(t), Size: *a.Size, Services: a.Services, Provider: a.Provider,
		HardwareType: a.HardwareType, ImageType: a.ImageType,
	})
	var none *solve.Contradiction
	switch {
	case errors.As(err, &none):
		out.Reasons, out.Hint = &none.Reasons, orNull(none.Hint)
		return out, nil
	case errors.Is(err, context.DeadlineExceeded):
		return out, fault.Wrap("api", fault.Exhausted, err).Say("the template takes too long to solve").
			Hint("try fewer nodes, or constrain fewer services")
	case err != nil:
		return out, err
	}
	out.Nodes = new(listed(nodes, func(n solve.Node) triedNode {
		return triedNode{
			Number: n.Number, HardwareType: n.HardwareType, ImageType: n.ImageType, Services: notNil(n.Services),
		}
	}))
	return out, nil
}

type resolvedTemplate struct {
	Template json.RawMessage `json:"template"`
}

// template finds a template without parents and includes in what a project may use.
func (s *server) template(
	ctx context.Context, project intent.ProjectID, a oneEntity,
) (*catalogue.Catalogue, *catalogue.Template, error) {
	service, kind, err := s.ofKind(a.oneKind)
	if err != nil {
		return nil, nil, err
	}
	if kind != catalogue.Templates {
		return nil, nil, fault.New("api", fault.NotFound, "only cluster templates have this")
	}
	if _, err := service.Get(ctx, project, kind, a.Name); err != nil {
		return nil, nil, err
	}
	c, err := service.Catalogue(ctx, project)
	if err != nil {
		return nil, nil, err
	}
	t, err := c.Resolve(a.Name)
	if err != nil {
		return nil, nil, fault.Wrap("api", fault.Conflict, err).Say("the template " + a.Name + " cannot be used")
	}
	return c, t, nil
}

func (s *server) getResolvedTemplate(
	ctx context.Context, project intent.ProjectID, a oneEntity,
) (out resolvedTemplate, err error) {
	_, t, err := s.template(ctx, project, a)
	if err == nil {
		out.Template, err = json.Marshal(t)
	}
	return out, err
}

type formOf struct {
	oneEntity
	Provider string `arg:"provider"`
}

// templateForm is what a user is asked for. Fields left empty get the defaults. The fields are those of the
// provider; all of one of the sets in required have to be given, and without sets none.
type templateForm struct {
	Template     string        `json:"template"`
	Label        string        `json:"label"`
	Description  string        `json:"description"`
	Size         formSize      `json:"size"`
	Services     []formService `json:"services"`
	Provider     formChoice    `json:"provider"`
	HardwareType formChoice    `json:"hardwaretype"`
	ImageType    formChoice    `json:"imagetype"`
	DNSSuffix    string        `json:"dnsSuffix"`
	Lease        formLease     `json:"lease"`
	Fields       []formField   `json:"fields"`
	Required     [][]string    `json:"required"`
}

type formSize struct {
	Min     int `json:"min"`
	Max     int `json:"max"`
	Default int `json:"default"`
}

type formService struct {
	Name        string `json:"name"`
	Label       string `json:"label"`
	Description string `json:"description"`
	Default     bool   `json:"default"`
}

type formChoice struct {
	Default *string  `json:"default"` // null: the layout decides
	Options []string `json:"options"`
}

// formLease are milliseconds; 0 is without end.
type formLease struct {
	Initial int64 `json:"initial"`
	Max     int64 `json:"max"`
	Step    int64 `json:"step"`
}

type formField struct {
	Name      string            `json:"name"`
	Label     string            `json:"label"`
	Type      string            `json:"type"` // text, password, select, checkbox, file or json
	Tip       string            `json:"tip"`
	Options   []json.RawMessage `json:"options"`
	Default   json.RawMessage   `json:"default"`
	Sensitive bool              `json:"sensitive"` // it is sealed, and does not go to Git
}

func (s *server) getTemplateForm(ctx context.Context, project intent.ProjectID, a formOf) (templateForm, error) {
	c, t, err := s.template(ctx, project, a.oneEntity)
	if err != nil {
		return templateForm{}, err
	}
	provider := a.Provider
	if provider == "" {
		provider = t.Defaults.Provider
	}
	fields, required, err := c.UserFields(a.Name, provider)
	if err != nil {
		return templateForm{}, invalid("%v", err)
	}
	p, size, lease := c.Providers[provider], t.Constraints.Size, t.Administration.Lease
	out := templateForm{
		Template: t.Name, Label: t.Label, Description: t.Description, DNSSuffix: t.Defaults.DNSSuffix,
		Size:     formSize{Min: max(1, size.Min), Max: size.Max, Default: max(1, size.Min)},
		Provider: formChoice{Default: &provider, Options: slices.Sorted(maps.Keys(c.Providers))},
		HardwareType: formChoice{
			Default: orNull(t.Defaults.HardwareType),
			Options: offered(c.HardwareTypes, t.Compatibility.HardwareTypes, func(h *catalogue.HardwareType) bool {
				_, ok := catalogue.Mapped(h.ProviderMap, p)
				return ok
			}),
		},
		ImageType: formChoice{
			Default: orNull(t.Defaults.ImageType),
			Options: offered(c.ImageTypes, t.Compatibility.ImageTypes, func(i *catalogue.ImageType) bool {
				_, ok := catalogue.Mapped(i.ProviderMap, p)
				return ok
			}),
		},
		Lease: formLease{
			Initial: time.Duration(lease.Initial).Milliseconds(), Max: time.Duration(lease.Max).Milliseconds(),
			Step: time.Duration(lease.Step).Milliseconds(),
		},
		Services: []formService{}, Fields: []formField{}, Required: notNil(required),
	}
	if out.Size.Max == 0 {
		out.Size.Max = catalogue.MaxSize
	}
	for _, name := range t.Compatibility.Services {
		one := formService{Name: name, Default: slices.Contains(t.Defaults.Services, name)}
		if known := c.Services[name]; known != nil {
			one.Label, one.Description = known.Label, known.Description
		}
		out.Services = append(out.Services, one)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		one := formField{
			Name: name, Label: f.Label, Type: f.Type, Tip: f.Tip, Options: notNil(f.Options), Sensitive: f.Secret(),
		}
		if one.Default = f.Default; f.Secret() || len(f.Default) == 0 {
			one.Default = json.RawMessage("null")
		}
		out.Fields = append(out.Fields, one)
	}
	return out, nil
}

// offered lists the hardware or image types that a provider has, and that a template allows; an empty list allows all.
func offered[T any](all map[string]T, allowed []string, has func(T) bool) []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if (len(allowed) == 0 || slices.Contains(allowed, name)) && has(all[name]) {
			out = append(out, name)
		}
	}
	return out
}
