package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
)

// filteredCalls act on all resources that a filter matches. The filter is an object in the form that inmanta-core's
// GraphQL filter of resources has; status, parked and resourceIds are Ordain's.
func (s *server) filteredCalls(c *calls) {
	v2(c, http.MethodPost, "/api/v2/deploy_filtered",
		"Deploy the resources that a filter matches, or verify and repair them. The answer lists them.",
		access.Deploy, s.deployFiltered)
	v2(c, http.MethodPost, "/api/v2/dryrun_filtered",
		"Start a dry run of the resources that a filter matches. The answer is its id and its version.",
		access.StartDryRun, s.dryRunFiltered)
	v2(c, http.MethodPost, "/api/v2/compliance_report",
		"Say of resources of the active version how they compare to their intent.",
		access.SeeResources, s.complianceReport)
}

type filteredDeployment struct {
	inEnvironment
	Filter  map[string]any `arg:"filter"`
	Trigger triggerMethod  `arg:"agent_trigger_method"`
}

type filteredDryRun struct {
	inEnvironment
	Filter  map[string]any `arg:"filter"`
	Context map[string]any `arg:"context"`
}

type dryRunIdentity struct {
	ID    uuid.UUID `json:"id"`
	Model int       `json:"model"`
}

type complianceOf struct {
	inEnvironment
	Resources []string `arg:"resource_ids,required"`
}

type compliance struct {
	ReportOnly       bool                               `json:"report_only"`
	Compliance       intent.Compliance                  `json:"compliance"`
	LastHandlerRun   intent.HandlerResult               `json:"last_handler_run"`
	LastHandlerRunAt *timestamp                         `json:"last_handler_run_at"`
	AttributeDiff    *map[string]intent.AttributeChange `json:"attribute_diff"`
}

func (s *server) deployFiltered(ctx context.Context, a filteredDeployment) ([]string, error) {
	f, _, err := resourceFilterOf(a.Filter)
	if err != nil {
		return nil, err
	}
	matched, err := s.control.DeployMatching(ctx, a.Env, f, a.Trigger != incrementalDeploy)
	return ids(matched.IDs), err
}

func (s *server) dryRunFiltered(ctx context.Context, a filteredDryRun) (dryRunIdentity, error) {
	f, sent, err := resourceFilterOf(a.Filter)
	if err != nil {
		return dryRunIdentity{}, err
	}
	q := control.FilteredDryRun{Filter: f, Sent: sent}
	if a.Context != nil {
		if q.Context, err = json.Marshal(a.Context); err != nil {
			return dryRunIdentity{}, invalid("context: %v", err)
		}
	}
	run, err := s.control.DryRunMatching(ctx, a.Env, q)
	return dryRunIdentity{run.ID, run.Version}, err
}

func (s *server) complianceReport(ctx context.Context, a complianceOf) (map[string]compliance, error) {
	out := map[string]compliance{}
	if len(a.Resources) == 0 {
		return out, nil
	}
	found, err := s.control.ComplianceReports(ctx, a.Env, a.Resources)
	for _, r := range found {
		one := compliance{
			ReportOnly: r.ReportOnly, Compliance: r.State.Compliance, LastHandlerRun: r.State.LastRun,
			LastHandlerRunAt: maybe(r.State.LastRunAt),
		}
		if r.State.Compliance == intent.NonCompliant && len(r.Differs) > 0 {
			one.AttributeDiff = &r.Differs
		}
		out[r.ID.String()] = one
	}
	return out, err
}

// resourceFilter is the wire form of intent.ResourceFilter.
type resourceFilter struct {
	ResourceType    *textFilter                  `json:"resourceType"`
	ResourceIDValue *textFilter                  `json:"resourceIdValue"`
	Agent           *textFilter                  `json:"agent"`
	Purged          *bool                        `json:"purged"`
	Blocked         *enumFilter[blockedWord]     `json:"blocked"`
	Compliance      *enumFilter[complianceWord]  `json:"compliance"`
	LastHandlerRun  *enumFilter[lastHandlerWord] `json:"lastHandlerRun"`
	IsDeploying     *bool                        `json:"isDeploying"`
	IsOrphan        *bool                        `json:"isOrphan"`
	ModelVersion    *int32                       `json:"modelVersion"`

	Status      *statusFilter `json:"status"`
	Parked      *bool         `json:"parked"`
	ResourceIDs oneOrMore     `json:"resourceIds"`
}

type textFilter struct {
	Eq          oneOrMore `json:"eq"`
	Neq         oneOrMore `json:"neq"`
	Contains    oneOrMore `json:"contains"`
	NotContains oneOrMore `json:"notContains"`
}

// enumFilter compares words that GraphQL writes in capitals.
type enumFilter[W words] struct {
	Eq  oneOrMore `json:"eq"`
	Neq oneOrMore `json:"neq"`
}

type statusFilter struct {
	Eq  oneOrMore `json:"eq"`
	Neq oneOrMore `json:"neq"`
}

// words knows the words of an enumeration.
type words interface{ words() []string }

type (
	blockedWord     struct{}
	complianceWord  struct{}
	lastHandlerWord struct{}
)

func (blockedWord) words() []string {
	return []string{string(intent.IsBlocked), string(intent.NotBlocked), string(intent.TemporarilyBlocked)}
}

func (complianceWord) words() []string {
	return []string{
		string(intent.Compliant), string(intent.HasUpdate), string(intent.NonCompliant), string(intent.Undefined),
	}
}

func (lastHandlerWord) words() []string {
	return []string{
		string(intent.RunNew), string(intent.RunSuccessful), string(intent.RunFailed), string(intent.RunSkipped),
	}
}

// maxFilterValues is how many values one list of a filter may have.
const maxFilterValues = 10_000

// oneOrMore is a list of texts, or one text that stands for a list of it. A missing or null list is nil.
type oneOrMore []string

func (l *oneOrMore) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if len(b) > 0 && b[0] == '"' {
		*l = oneOrMore{""}
		return json.Unmarshal(b, &(*l)[0])
	}
	list := []*string{}
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("should be a list of texts")
	}
	if len(list) > maxFilterValues {
		return fmt.Errorf("a list may have at most %d values", maxFilterValues)
	}
	*l = make(oneOrMore, len(list))
	for i, text := range list {
		if text == nil {
			return fmt.Errorf("a list must not contain null")
		}
		if err := checkText(*text, maxText); err != nil {
			return err
		}
		(*l)[i] = *text
	}
	return nil
}

// resourceFilterOf reads the filter of a call. sent is the filter as it came; nil when there was none.
func resourceFilterOf(args map[string]any) (f intent.ResourceFilter, sent json.RawMessage, err error) {
	if args == nil {
		return f, nil, nil
	}
	if sent, err = json.Marshal(args); err != nil {
		return f, nil, invalid("filter: %v", err)
	}
	var wire resourceFilter
	decoder := json.NewDecoder(bytes.NewReader(sent))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wire); err != nil {
		return f, nil, &argumentError{fields: []fieldError{{
			Type: "value_error", Loc: []string{"filter"}, Msg: strings.TrimPrefix(err.Error(), "json: "),
		}}}
	}
	f, err = wire.value()
	return f, sent, err
}

func (w resourceFilter) value() (f intent.ResourceFilter, err error) {
	f = intent.ResourceFilter{
		Type: w.ResourceType.value(), Agent: w.Agent.value(), Value: w.ResourceIDValue.value(),
		Purged: w.Purged, Deploying: w.IsDeploying, Orphan: w.IsOrphan, Parked: w.Parked,
	}
	if w.ModelVersion != nil {
		if f.Version = int(*w.ModelVersion); f.Version <= 0 {
			return f, wrongFilter("modelVersion", "a version is a number above 0")
		}
	}
	if w.ResourceIDs != nil {
		if f.Resources, err = parseIDs("resourceIds", w.ResourceIDs); err != nil {
			return f, err
		}
		f.Resources = notNil(f.Resources)
	}
	if f.Blocked, err = oneOf[intent.Blocked]("blocked", w.Blocked); err != nil {
		return f, err
	}
	if f.Compliance, err = oneOf[intent.Compliance]("compliance", w.Compliance); err != nil {
		return f, err
	}
	if f.LastRun, err = oneOf[intent.HandlerResult]("lastHandlerRun", w.LastHandlerRun); err != nil {
		return f, err
	}
	if w.Status != nil {
		f.Status.In, f.Status.NotIn = as[intent.Status](w.Status.Eq), as[intent.Status](w.Status.Neq)
	}
	return f, nil
}

func (t *textFilter) value() intent.TextFilter {
	if t == nil {
		return intent.TextFilter{}
	}
	return intent.TextFilter{In: t.Eq, NotIn: t.Neq, Like: t.Contains, NotLike: t.NotContains}
}

// oneOf reads the words of an enumeration.
func oneOf[T ~string, W words](name string, w *enumFilter[W]) (out intent.ChoiceFilter[T], err error) {
	if w == nil {
		return out, nil
	}
	var of W
	for _, list := range []oneOrMore{w.Eq, w.Neq} {
		for i, word := range list {
			lower := strings.ToLower(word)
			if word != strings.ToUpper(word) || !slices.Contains(of.words(), lower) {
				return out, wrongFilter(name, fmt.Sprintf("%q is none of %s", word,
					strings.ToUpper(strings.Join(of.words(), ", "))))
			}
			list[i] = lower
		}
	}
	return intent.ChoiceFilter[T]{In: as[T](w.Eq), NotIn: as[T](w.Neq)}, nil
}

func as[T ~string](list oneOrMore) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(list))
	for i, text := range list {
		out[i] = T(text)
	}
	return out
}

func wrongFilter(name, text string) error {
	return &argumentError{fields: []fieldError{{Type: "value_error", Loc: []string{"filter", name}, Msg: text}}}
}
