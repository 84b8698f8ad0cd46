package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/push"
)

// maxExportValues is how many JSON values a version may have: 100,000 resources of about 40 values.
const maxExportValues = 4_000_000

func (s *server) pushCalls(c *calls) {
	v2(c, http.MethodPost, "/api/v2/reserve_version",
		"Reserve a version number for a version that is compiled on another machine.", access.PutVersion,
		s.reserveVersion)
	done[object](c, http.MethodPut, "/api/v1/version",
		"Store a version that inmanta export compiled on another machine, under a reserved number.",
		access.PutVersion, s.putVersion, uploads)
	v2(c, http.MethodPut, "/api/v2/version/partial",
		"Store a version of which inmanta export compiled some resource sets; the others stay as they are.",
		access.PutVersion, s.putPartial, uploads)
	v2(c, http.MethodPut, "/api/v2/version/document",
		"Store a version that ordain export compiled on another machine.", access.PutVersion, s.putDocument, uploads)
	v2(c, http.MethodGet, "/api/v2/pip/config/{version}", "Show where the packages of a version come from.",
		access.SeeVersions, s.getPipConfig)
}

// rawJSON is an argument that stays as it was sent, because it is large.
type rawJSON json.RawMessage

func (r *rawJSON) set(value any) error {
	switch x := value.(type) {
	case json.RawMessage:
		*r = rawJSON(x)
	case nil:
		*r = nil
	default:
		return errors.New("Input should be a JSON object or a list")
	}
	return nil
}

// bulk is embedded in the arguments of calls that take a whole version.
type bulk struct{}

func (bulk) maxValues() int { return maxExportValues }

type reserveArgs struct {
	inEnvironment
}

// exportedVersion has the arguments that full and partial exports have in common.
type exportedVersion struct {
	Resources     rawJSON `arg:"resources,required"`
	Modules       rawJSON `arg:"module_version_info,required"`
	ResourceState rawJSON `arg:"resource_state"`
	ResourceSets  rawJSON `arg:"resource_sets"`
	Unknowns      rawJSON `arg:"unknowns"`
	Info          rawJSON `arg:"version_info"`
	Pip           rawJSON `arg:"pip_config"`
}

func (e exportedVersion) export() push.Export {
	return push.Export{
		Resources: json.RawMessage(e.Resources), Modules: json.RawMessage(e.Modules),
		ResourceState: json.RawMessage(e.ResourceState), ResourceSets: json.RawMessage(e.ResourceSets),
		Unknowns: json.RawMessage(e.Unknowns), Info: json.RawMessage(e.Info), Pip: json.RawMessage(e.Pip),
	}
}

type putVersionArgs struct {
	bulk
	inEnvironment
	exportedVersion
	Version     int    `arg:"version,required"`
	Constraints string `arg:"project_constraints" max:"1048576"`
}

type putPartialArgs struct {
	bulk
	inEnvironment
	exportedVersion
	RemovedSets []string `arg:"removed_resource_sets"`
	AllowCode   bool     `arg:"allow_handler_code_update"`
}

type putDocumentArgs struct {
	bulk
	inEnvironment
	Document  rawJSON `arg:"document,required"`
	From      rawJSON `arg:"from"`
	AllowCode bool    `arg:"allow_handler_code_update"`
}

// pushedVersion is the answer about a version that was sent.
type pushedVersion struct {
	Version  int     `json:"version"`
	Released bool    `json:"released"`
	Why      *string `json:"not_released_because"`
}

// pipConfig is pip_config as clients know it.
type pipConfig struct {
	IndexURL        *string  `json:"index-url"`
	ExtraIndexURL   []string `json:"extra-index-url"`
	Pre             *bool    `json:"pre"`
	UseSystemConfig bool     `json:"use-system-config"`
}

// pushed says that a version is not from a commit.
type pushed struct {
	By          string    `json:"by"`
	When        timestamp `json:"when"`
	User        *string   `json:"user"`
	Host        *string   `json:"host"`
	Client      *string   `json:"client"`
	Commit      *string   `json:"commit"`
	Branch      *string   `json:"branch"`
	Dirty       *bool     `json:"dirty"`
	Message     *string   `json:"message"`
	Description string    `json:"description"`
}

func pushedOf(p *intent.Pushed) *pushed {
	if p == nil {
		return nil
	}
	return &pushed{
		By: p.By, When: stamp(p.When), User: orNull(p.User), Host: orNull(p.Host), Client: orNull(p.Client),
		Commit: orNull(p.Commit), Branch: orNull(p.Branch), Dirty: p.Dirty, Message: orNull(p.Message),
		Description: p.Words(),
	}
}

func (s *server) reserveVersion(ctx context.Context, a reserveArgs) (int, error) {
	return s.control.ReserveVersion(ctx, a.Env)
}

func (s *server) putVersion(ctx context.Context, a putVersionArgs) error {
	e := a.export()
	e.Version, e.Constraints = a.Version, a.Constraints
	_, err := s.control.PushExport(ctx, a.Env, e)
	return err
}

func (s *server) putPartial(ctx context.Context, a putPartialArgs) (int, error) {
	e := a.export()
	e.Partial, e.RemovedSets, e.AllowCode = true, a.RemovedSets, a.AllowCode
	p, err := s.control.PushExport(ctx, a.Env, e)
	return p.Number, err
}

func (s *server) putDocument(ctx context.Context, a putDocumentArgs) (pushedVersion, error) {
	d := push.Document{AllowCode: a.AllowCode}
	if err := json.Unmarshal(a.Document, &d.Document); err != nil {
		return pushedVersion{}, invalid("the document cannot be read: %v", err)
	}
	if len(a.From) > 0 {
		if err := json.Unmarshal(a.From, &d.From); err != nil {
			return pushedVersion{}, invalid("from cannot be read: %v", err)
		}
	}
	p, err := s.control.PushDocument(ctx, a.Env, d)
	return pushedVersion{p.Number, p.Released, orNull(p.Why)}, err
}

func (s *server) getPipConfig(ctx context.Context, a oneVersion) (*pipConfig, error) {
	p, err := s.control.PipConfig(ctx, a.Env, a.Version)
	if err != nil {
		return nil, err
	}
	out := &pipConfig{
		IndexURL: orNull(p.IndexURL), ExtraIndexURL: p.ExtraIndexURL, Pre: p.Pre, UseSystemConfig: p.UseSystemConfig,
	}
	if out.ExtraIndexURL == nil {
		out.ExtraIndexURL = []string{}
	}
	return out, nil
}
