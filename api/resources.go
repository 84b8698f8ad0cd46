package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

func (s *server) resourceCalls(c *calls) {
	const path, one = "/api/v2/resource", "/api/v2/resource/{rid}"
	whole(c, http.MethodGet, path, "List the resources of the active version.", access.SeeResources, s.listResources,
		pagesOf(store.ResourceList), shares)
	v2(c, http.MethodGet, one, "Show a resource of the active version.", access.SeeResources, s.getResource)
	whole(c, http.MethodGet, one+"/history", "List how the intent of a resource changed.",
		access.SeeResources, s.listResourceHistory,
		pagesOf(store.ResourceHistoryList))
	whole(c, http.MethodGet, one+"/logs", "List the log lines of a resource.", access.SeeResources, s.listResourceLogs,
		pagesOf(store.ResourceLogList))
	whole(c, http.MethodGet, "/api/v1/resource/{rid}", "Show a resource of a version, with its log when asked.",
		access.SeeResources, s.getResourceV1)
	v2(c, http.MethodPost, one+"/deploy",
		"Deploy one resource, whatever its state, and no other one. A contested resource takes unpark, too. "+
			"The answer names what it requires and waits for.",
		access.Deploy, s.deployResource)
	whole(c, http.MethodGet, "/api/v2/resource_actions", "Search the action log, newest first.",
		access.SeeResources, s.searchActions)
	whole(c, http.MethodPost, "/api/v1/deploy", "Deploy what is not as intended, or everything.",
		access.Deploy, s.deploy)
}

// resourceBase is what answers about one resource begin with.
type resourceBase struct {
	ResourceID       string         `json:"resource_id"`
	ResourceType     string         `json:"resource_type"`
	Agent            string         `json:"agent"`
	IDAttribute      string         `json:"id_attribute"`
	IDAttributeValue string         `json:"id_attribute_value"`
	Attributes       map[string]any `json:"attributes"`
}

// resource is a resource of the active version.
type resource struct {
	resourceBase
	LastDeploy         *timestamp               `json:"last_deploy"`
	FirstGeneratedTime timestamp                `json:"first_generated_time"`
	Status             intent.Status            `json:"status"`
	RequiresStatus     map[string]intent.Status `json:"requires_status"`
	retrying
}

// resourceLine is a resource in a list.
type resourceLine struct {
	ResourceID        string    `json:"resource_id"`
	ResourceVersionID string    `json:"resource_version_id"`
	IDDetails         idDetails `json:"id_details"`
	Requires          []string  `json:"requires"`
}

type idDetails struct {
	ResourceType    string `json:"resource_type"`
	Agent           string `json:"agent"`
	Attribute       string `json:"attribute"`
	ResourceIDValue string `json:"resource_id_value"`
}

// resourceStatus is a resource of the active version in a list.
type resourceStatus struct {
	resourceLine
	Status intent.Status `json:"status"`
	retrying
}

// deploySummary counts the resources by state.
type deploySummary struct {
	Total   int                   `json:"total"`
	ByState map[intent.Status]int `json:"by_state"`
}

type resourceHistory struct {
	ResourceID    string         `json:"resource_id"`
	Date          timestamp      `json:"date"`
	Attributes    map[string]any `json:"attributes"`
	AttributeHash string         `json:"attribute_hash"`
	Requires      []string       `json:"requires"`
}

// resourceV1 is a resource of a version as version 1 shows it.
type resourceV1 struct {
	Environment       uuid.UUID      `json:"environment"`
	Model             int            `json:"model"`
	ResourceID        string         `json:"resource_id"`
	ResourceVersionID string         `json:"resource_version_id"`
	ResourceType      string         `json:"resource_type"`
	Agent             string         `json:"agent"`
	ResourceIDValue   string         `json:"resource_id_value"`
	Attributes        map[string]any `json:"attributes"`
	AttributeHash     string         `json:"attribute_hash"`
	ResourceSet       *string        `json:"resource_set"`
	Status            intent.Status  `json:"status"`
	IsUndefined       bool           `json:"is_undefined"`
	LastDeploy        *timestamp     `json:"last_deploy"`
	Provides          []string       `json:"provides"`
}

type resourceEnvelope struct {
	Resource resourceV1       `json:"resource"`
	Logs     []resourceAction `json:"logs"`
}

type loggedResourceV1 struct {
	resourceV1
	// Actions are there when they are asked for.
	Actions *[]resourceAction `json:"actions,omitempty"`
}

type agentsEnvelope struct {
	Agents   []string  `json:"agents"`
	Metadata *warnings `json:"metadata,omitempty"`
}

type oneResource struct {
	inEnvironment
	ID intent.ResourceID `arg:"rid,required"`
}

type resourcePage struct {
	oneResource
	paging
}

type resourcesPage struct {
	pageIn
	Summary bool `arg:"deploy_summary"`
}

func (p resourcesPage) sharedArguments() string {
	return p.pageIn.sharedArguments() + strconv.FormatBool(p.Summary)
}

type resourceOfVersion struct {
	inEnvironment
	ID     string  `arg:"rid,required"`
	Logs   bool    `arg:"logs"`
	Status *bool   `arg:"status"`
	Action *string `arg:"log_action"`
	Limit  int     `arg:"log_limit"`
}

type deployment struct {
	inEnvironment
	Trigger triggerMethod `arg:"agent_trigger_method"`
	Agents  []string      `arg:"agents"`
}

type resourceDeployment struct {
	oneResource
	Unpark bool `arg:"unpark"`
}

// deployedResource is a resource that is deployed now, or once what it waits for is.
type deployedResource struct {
	ResourceID string           `json:"resource_id"`
	WaitsFor   []resourceInNeed `json:"waits_for"`
}

// resourceInNeed is a resource that has to be deployed first.
type resourceInNeed struct {
	ResourceID string        `json:"resource_id"`
	Status     intent.Status `json:"status"`
}

func (s *server) deployResource(ctx context.Context, a resourceDeployment) (deployedResource, error) {
	if a.Unpark {
		if err := s.allow(ctx, access.Unpark, a); err != nil {
			return deployedResource{}, err
		}
	}
	out := deployedResource{ResourceID: a.ID.String(), WaitsFor: []resourceInNeed{}}
	needs, err := s.control.DeployResource(ctx, a.Env, a.ID, a.Unpark)
	for id, status := range needs {
		out.WaitsFor = append(out.WaitsFor, resourceInNeed{id.String(), status})
	}
	slices.SortFunc(out.WaitsFor, func(a, b resourceInNeed) int { return strings.Compare(a.ResourceID, b.ResourceID) })
	return out, err
}

func (s *server) getResource(ctx context.Context, a oneResource) (resource, error) {
	d, err := s.store.Resource(ctx, a.Env, a.ID)
	if err != nil {
		return resource{}, err
	}
	requires := map[string]intent.Status{}
	for id, status := range d.RequiresStatus {
		requires[id.String()] = status
	}
	return resource{
		resourceBase: resourceBaseOf(d.Resource), LastDeploy: maybe(d.State.LastRunAt),
		FirstGeneratedTime: stamp(d.FirstGenerated), Status: d.State.Status(), RequiresStatus: requires,
		retrying: retryingOf(d.State),
	}, nil
}

func (s *server) listResourceHistory(ctx context.Context, a resourcePage) (page[resourceHistory], error) {
	q, err := a.query(store.ResourceHistoryList)
	if err != nil {
		return page[resourceHistory]{}, err
	}
	found, err := s.store.ResourceHistory(ctx, a.Env, a.ID, q)
	where := address{path: resourcePath(a.ID) + "/history", list: store.ResourceHistoryList}
	return pageOf(where, q, found, func(h intent.ResourceHistory) resourceHistory {
		return resourceHistory{
			ResourceID: a.ID.String(), Date: stamp(h.Date), Attributes: withRequires(h.Attributes, h.Requires),
			AttributeHash: h.AttributeHash, Requires: ids(h.Requires),
		}
	}, func(h intent.ResourceHistory) place { return atTime(h.Date, h.AttributeHash) }), err
}

func (s *server) listResourceLogs(ctx context.Context, a resourcePage) (page[actionLogLine], error) {
	q, err := a.query(store.ResourceLogList)
	if err != nil {
		return page[actionLogLine]{}, err
	}
	found, err := s.store.ResourceLogs(ctx, a.Env, a.ID, q)
	where := address{path: resourcePath(a.ID) + "/logs", list: store.ResourceLogList}
	return pageOf(where, q, found, func(l intent.ResourceLog) actionLogLine {
		return actionLogLine{logLineOf(l.LogLine), l.Action, l.Kind}
	}, func(l intent.ResourceLog) place { return atTime(l.Time, "") }), err
}

func (s *server) deploy(ctx context.Context, a deployment) (agentsEnvelope, error) {
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return agentsEnvelope{}, err
	}
	if e.Halted {
		return agentsEnvelope{}, fault.New("api", fault.Conflict, "the environment "+e.Name+" is halted").
			Hint("resume it first")
	}
	agents, err := s.control.Deploy(ctx, a.Env, a.Trigger != incrementalDeploy, a.Agents)
	out := agentsEnvelope{Agents: notNil(agents), Metadata: unknownAgents(a.Agents, agents)}
	if fault.Is(err, fault.NotFound) {
		return out, &bare{code: http.StatusNotFound, message: err.Error(), metadata: out.Metadata}
	}
	return out, err
}

// unknownAgents warns of agents that were asked for and do not exist; nil: there are none.
func unknownAgents(asked, found []string) *warnings {
	var unknown []string
	for _, name := range asked {
		if !slices.Contains(found, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return &warnings{[]string{"the active version has no agents named " + strings.Join(unknown, ", ")}}
}

func resourcePath(id intent.ResourceID) string { return "/api/v2/resource/" + escape(id.String()) }

func (s *server) listResources(ctx context.Context, a resourcesPage) (page[resourceStatus], error) {
	q, err := a.query(store.ResourceList)
	if err != nil {
		return page[resourceStatus]{}, err
	}
	where := address{path: "/api/v2/resource", list: store.ResourceList, extra: []string{"deploy_summary", "False"}}
	var summary *deploySummary
	if a.Summary {
		where.extra[1] = "True"
		counts, err := s.store.ResourceCounts(ctx, a.Env)
		if err != nil {
			return page[resourceStatus]{}, err
		}
		if summary = deploySummaryOf(counts); len(q.Filters) == 0 {
			q.Total = summary.Total
		}
	}
	found, err := s.store.Resources(ctx, a.Env, q)
	out := pageOf(where, q, found, func(r intent.ResourceRow) resourceStatus {
		return resourceStatus{
			resourceLineOf(r.State.ID, r.Version, r.Requires), r.State.Status(), retryingOf(r.State),
		}
	}, func(r intent.ResourceRow) place { return resourcePlace(q.Sort, r.State.ID, r.State.Status()) })
	out.Metadata.DeploySummary = summary
	return out, err
}

// summarized are the states that the summary of a list always counts.
var summarized = []intent.Status{
	intent.StatusAvailable, intent.StatusCancelled, intent.StatusDeployed, intent.StatusDeploying, intent.StatusFailed,
	intent.StatusNonCompliant, intent.StatusSkipped, intent.StatusSkippedForUndefined, intent.StatusUnavailable,
	intent.StatusUndefined,
}

func deploySummaryOf(counts map[intent.Status]int) *deploySummary {
	out := &deploySummary{ByState: map[intent.Status]int{}}
	for _, status := range summarized {
		out.ByState[status] = 0
	}
	for status, n := range counts {
		if status != intent.StatusOrphaned {
			out.ByState[status] = n
			out.Total += n
		}
	}
	return out
}

func (s *server) getResourceV1(ctx context.Context, a resourceOfVersion) (resourceEnvelope, error) {
	id, version, err := intent.ParseResourceVersionID(a.ID)
	if err != nil || version == 0 {
		return resourceEnvelope{}, &bare{
			code:    http.StatusBadRequest,
			message: "the resource id needs a version: module::Type[agent,attribute=value],v=1",
		}
	}
	r, err := s.store.VersionResource(ctx, a.Env, version, id)
	if err != nil {
		return resourceEnvelope{}, as404(err, "The resource with the given id does not exist in the given environment")
	}
	state, err := s.state(ctx, a.Env, id)
	if err != nil {
		return resourceEnvelope{}, err
	}
	out := resourceEnvelope{Resource: resourceV1Of(a.Env, r, state), Logs: []resourceAction{}}
	if !a.Logs && a.Action == nil {
		return out, nil
	}
	var kind intent.ActionKind
	if a.Action != nil {
		kind = intent.ActionKind(*a.Action)
	}
	limit := store.MaxPage
	if a.Limit > 0 && a.Limit < store.MaxPage {
		limit = a.Limit
	}
	actions, err := s.store.Actions(ctx, a.Env, id, kind, limit)
	for _, action := range actions {
		if action.Version == version {
			out.Logs = append(out.Logs, actionOf(action))
		}
	}
	return out, err
}

func resourceLineOf(id intent.ResourceID, version int, requires []intent.ResourceID) resourceLine {
	return resourceLine{
		ResourceID: id.String(), ResourceVersionID: id.AtVersion(version),
		IDDetails: idDetails{
			ResourceType: id.Type, Agent: id.Agent, Attribute: id.Attribute, ResourceIDValue: id.Value,
		},
		Requires: listed(requires, func(r intent.ResourceID) string { return r.AtVersion(version) }),
	}
}

func resourcePlace(field string, id intent.ResourceID, status intent.Status) place {
	value := id.Type
	switch field {
	case "agent":
		value = id.Agent
	case "resource_id_value":
		value = id.Value
	case "resource_id", "discovered_resource_id":
		value = id.String()
	case "status":
		value = string(status)
	}
	return at(value, id.String())
}

func resourceBaseOf(r intent.Resource) resourceBase {
	return resourceBase{
		ResourceID: r.ID.String(), ResourceType: r.ID.Type, Agent: r.ID.Agent, IDAttribute: r.ID.Attribute,
		IDAttributeValue: r.ID.Value, Attributes: withRequires(r.Attributes, r.Requires),
	}
}

// withRequires returns the attributes of a resource with what it requires among them, as clients expect.
func withRequires(raw json.RawMessage, requires []intent.ResourceID) map[string]any {
	attributes := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // numbers go out exactly as they came in
	if err := decoder.Decode(&attributes); err != nil || attributes == nil {
		attributes = map[string]any{}
	}
	attributes["requires"] = ids(requires)
	return attributes
}

func resourceV1Of(env intent.EnvironmentID, r intent.Resource, state *intent.ResourceState) resourceV1 {
	out := resourceV1{
		Environment: env, Model: r.Version, ResourceID: r.ID.String(), ResourceVersionID: r.ID.AtVersion(r.Version),
		ResourceType: r.ID.Type, Agent: r.ID.Agent, ResourceIDValue: r.ID.Value,
		Attributes: withRequires(r.Attributes, r.Requires), AttributeHash: r.AttributeHash,
		ResourceSet: orNull(r.ResourceSet), Status: intent.StatusAvailable, IsUndefined: len(r.Undefined) > 0,
		Provides: []string{},
	}
	if state != nil {
		out.Status, out.LastDeploy = state.Status(), maybe(state.LastRunAt)
	}
	return out
}
