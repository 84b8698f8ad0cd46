package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

var (
	resourceList = list{
		sort: "resource_type.desc", id: textID,
		columns: map[string]kind{
			"resource_type":     word,
			"agent":             word,
			"resource_id_value": word,
			"resource_id":       word,
			"status":            word,
		},
		filters: map[string]kind{
			"resource_type":     text,
			"agent":             text,
			"resource_id_value": text,
			"status":            text,
			"parked":            truth,
		},
	}
	historyList = list{sort: "date.desc", columns: map[string]kind{"date": moment}, id: textID}
	logList     = list{
		sort: "timestamp.desc", columns: map[string]kind{"timestamp": moment},
		filters: map[string]kind{"action": text, "timestamp": timeRange, "message": text, "minimal_log_level": level},
	}
)

type oneResource struct {
	inEnvironment
	ID intent.ResourceID `arg:"rid,required"`
}

func (s *server) resources(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/resource", s.resourceList)
	call(s, g, http.MethodGet, "/api/v2/resource/{rid}", func(ctx context.Context, a oneResource) (reply, error) {
		d, err := s.store.Resource(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		requires := map[string]any{}
		for id, status := range d.RequiresStatus {
			requires[id.String()] = status
		}
		out := resourceBase(a.ID, attributesOf(d.Resource))
		out["last_deploy"] = maybe(d.State.LastRunAt)
		out["first_generated_time"] = stamp(d.FirstGenerated)
		out["status"] = d.State.Status()
		out["requires_status"] = requires
		return v2(parkingOf(out, d.State))
	})
	call(s, g, http.MethodGet, "/api/v2/resource/{rid}/history", func(ctx context.Context, a struct {
		oneResource
		paging
	}) (reply, error) {
		q, err := historyList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		page, err := s.store.ResourceHistory(ctx, a.Env, a.ID, q)
		if err != nil {
			return reply{}, err
		}
		return paged(resourcePath(a.ID)+"/history", historyList, q, page, func(h intent.ResourceHistory) any {
			requires := []string{}
			for _, id := range h.Requires {
				requires = append(requires, id.String())
			}
			return map[string]any{
				"resource_id": a.ID, "date": stamp(h.Date), "attributes": withRequires(h.Attributes, h.Requires),
				"attribute_hash": h.AttributeHash, "requires": requires,
			}
		}, func(h intent.ResourceHistory) place { return atTime(h.Date, h.AttributeHash) })
	})
	call(s, g, http.MethodGet, "/api/v2/resource/{rid}/logs", func(ctx context.Context, a struct {
		oneResource
		paging
	}) (reply, error) {
		q, err := logList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		page, err := s.store.ResourceLogs(ctx, a.Env, a.ID, q)
		if err != nil {
			return reply{}, err
		}
		return paged(resourcePath(a.ID)+"/logs", logList, q, page, func(l intent.ResourceLog) any {
			line := logLine(l.LogLine)
			line["action_id"], line["action"] = l.Action, l.Kind
			return line
		}, func(l intent.ResourceLog) place { return atTime(l.Time, "") })
	})
	call(s, g, http.MethodGet, "/api/v1/resource/{rid}", s.resourceV1)
	call(s, g, http.MethodGet, "/api/v2/resource_actions", s.resourceActions)
	call(s, g, http.MethodPost, "/api/v1/deploy", func(ctx context.Context, a struct {
		inEnvironment
		Trigger string   `arg:"agent_trigger_method"`
		Agents  []string `arg:"agents"`
	}) (reply, error) {
		full := true
		switch a.Trigger {
		case "", "push_full_deploy":
		case "push_incremental_deploy":
			full = false
		default:
			return reply{}, invalid("agent_trigger_method must be push_full_deploy or push_incremental_deploy")
		}
		agents, err := s.control.Deploy(ctx, a.Env, full, a.Agents)
		if fault.Is(err, fault.NotFound) {
			return reply{}, &bare{code: http.StatusNotFound, message: err.Error()}
		}
		if err != nil {
			return reply{}, err
		}
		if agents == nil {
			agents = []string{}
		}
		return v1(map[string]any{"agents": agents})
	})
}

func resourcePath(id intent.ResourceID) string { return "/api/v2/resource/" + escape(id.String()) }

// summarized are the states that the summary of a list always counts.
var summarized = []intent.Status{
	intent.StatusAvailable, intent.StatusCancelled, intent.StatusDeployed, intent.StatusDeploying, intent.StatusFailed,
	intent.StatusNonCompliant, intent.StatusSkipped, intent.StatusSkippedForUndefined, intent.StatusUnavailable, intent.StatusUndefined,
}

func (s *server) resourceList(ctx context.Context, a struct {
	inEnvironment
	paging
	Summary bool `arg:"deploy_summary"`
}) (reply, error) {
	q, err := resourceList.query(a.paging)
	if err != nil {
		return reply{}, err
	}
	flag, summary := "False", map[string]any(nil)
	if a.Summary {
		flag = "True"
		counts, err := s.store.ResourceCounts(ctx, a.Env)
		if err != nil {
			return reply{}, err
		}
		var total int
		if summary, total = deploySummary(counts); len(q.Filters) == 0 {
			q.Total = total
		}
	}
	page, err := s.store.Resources(ctx, a.Env, q)
	if err != nil {
		return reply{}, err
	}
	answer, err := paged("/api/v2/resource", resourceList, q, page, func(r intent.ResourceRow) any {
		row := versionedResource(r.State.ID, r.Version, r.Requires)
		row["status"] = r.State.Status()
		return parkingOf(row, r.State)
	}, func(r intent.ResourceRow) place { return resourcePlace(q.Sort, r.State.ID, r.State.Status()) }, "deploy_summary", flag)
	if err != nil || !a.Summary {
		return answer, err
	}
	answer.body.(map[string]any)["metadata"].(map[string]any)["deploy_summary"] = summary
	return answer, nil
}

// deploySummary is what the summary of a list says of how many resources are in which state.
func deploySummary(counts map[intent.Status]int) (summary map[string]any, total int) {
	byState := map[intent.Status]int{}
	for _, status := range summarized {
		byState[status] = 0
	}
	for status, n := range counts {
		if status == intent.StatusOrphaned {
			continue
		}
		byState[status] = n
		total += n
	}
	return map[string]any{"total": total, "by_state": byState}, total
}

// resourceV1 gives one resource of a version, with its log when asked.
func (s *server) resourceV1(ctx context.Context, a struct {
	inEnvironment
	ID     string  `arg:"rid,required"`
	Logs   *bool   `arg:"logs"`
	Status *bool   `arg:"status"`
	Action *string `arg:"log_action"`
	Limit  int     `arg:"log_limit"`
}) (reply, error) {
	id, version, err := intent.ParseResourceVersionID(a.ID)
	if err != nil || version == 0 {
		return reply{}, &bare{code: http.StatusInternalServerError,
			message: prefixes[http.StatusInternalServerError] + "the resource id needs a version: module::Type[agent,attribute=value],v=1"}
	}
	r, err := s.store.VersionResource(ctx, a.Env, version, id)
	if fault.Is(err, fault.NotFound) {
		return reply{}, &bare{
			code:    http.StatusNotFound,
			message: "The resource with the given id does not exist in the given environment",
		}
	}
	if err != nil {
		return reply{}, err
	}
	var state *intent.ResourceState
	if d, err := s.store.Resource(ctx, a.Env, id); err == nil {
		state = &d.State
	} else if !fault.Is(err, fault.NotFound) {
		return reply{}, err
	}
	logs := []any{}
	if a.Logs != nil && *a.Logs || a.Action != nil {
		var kind intent.ActionKind
		if a.Action != nil {
			kind = intent.ActionKind(*a.Action)
		}
		limit := maxPage
		if a.Limit > 0 && a.Limit < maxPage {
			limit = a.Limit
		}
		actions, err := s.store.Actions(ctx, a.Env, id, kind, limit)
		if err != nil {
			return reply{}, err
		}
		for _, action := range actions {
			if action.Version == version {
				logs = append(logs, actionOf(action))
			}
		}
	}
	return v1(map[string]any{"resource": resourceV1(a.Env, r, state), "logs": logs})
}

// resourceActions searches the action log, newest first.
func (s *server) resourceActions(ctx context.Context, a struct {
	inEnvironment
	Type           *string    `arg:"resource_type"`
	Agent          *string    `arg:"agent"`
	Attribute      *string    `arg:"attribute"`
	Value          *string    `arg:"attribute_value"`
	Severity       *string    `arg:"log_severity"`
	Limit          int        `arg:"limit"`
	ActionID       *uuid.UUID `arg:"action_id"`
	First          *string    `arg:"first_timestamp"`
	Last           *string    `arg:"last_timestamp"`
	ExcludeChanges []string   `arg:"exclude_changes"`
}) (reply, error) {
	switch {
	case a.Attribute == nil != (a.Value == nil):
		return reply{}, invalid("attribute and attribute_value are used together")
	case a.First != nil && a.Last != nil:
		return reply{}, invalid("only one of first_timestamp and last_timestamp can be used at a time")
	case a.Limit > maxPage:
		return reply{}, invalid("the parameter limit can not exceed %d", maxPage)
	}
	limit := a.Limit
	if limit <= 0 {
		limit = maxPage
	}
	atLeast := ""
	if a.Severity != nil {
		checked, err := filterValue(level, *a.Severity)
		if err != nil {
			return reply{}, invalid("log_severity: %v", err)
		}
		atLeast = checked
	}
	keepTime := func(intent.Action) bool { return true }
	if given := cmpOr(a.First, a.Last); given != nil {
		bound, err := parseTime(*given)
		if err != nil {
			return reply{}, invalid("%q: %v", *given, err)
		}
		keepTime = func(x intent.Action) bool { return x.Started.Before(bound) }
		if a.First != nil {
			keepTime = func(x intent.Action) bool { return x.Started.After(bound) }
		}
	}
	found, err := s.store.Actions(ctx, a.Env, intent.ResourceID{}, "", searchWindow)
	if err != nil {
		return reply{}, err
	}
	out := []any{}
	for _, x := range found {
		if len(out) == limit {
			break
		}
		switch {
		case !keepTime(x),
			a.Type != nil && x.Resource.Type != *a.Type,
			a.Agent != nil && x.Resource.Agent != *a.Agent,
			a.Attribute != nil && (x.Resource.Attribute != *a.Attribute || x.Resource.Value != *a.Value),
			a.ActionID != nil && x.ID != *a.ActionID,
			slices.Contains(a.ExcludeChanges, string(x.Change)),
			atLeast != "" && !slices.ContainsFunc(x.Messages, func(l intent.LogLine) bool { return severity(l.Level) >= severity(atLeast) }):
			continue
		}
		out = append(out, actionOf(x))
	}
	return reply{body: map[string]any{"data": out, "links": map[string]any{}}}, nil
}

// searchWindow is how far back a search in the action log looks.
const searchWindow = 10_000

func cmpOr(a, b *string) *string {
	if a != nil {
		return a
	}
	return b
}

func severity(level string) int {
	return slices.Index([]string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}, strings.ToUpper(level))
}

// statuses gives the state of every resource of the active version.
func (s *server) statuses(ctx context.Context, in inEnvironment) (map[intent.ResourceID]*intent.ResourceState, error) {
	states := map[intent.ResourceID]*intent.ResourceState{}
	q := intent.ListQuery{Limit: maxPage, Sort: "resource_id"}
	for {
		page, err := s.store.Resources(ctx, in.Env, q)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Items {
			states[row.State.ID] = &row.State
		}
		if page.After == 0 || len(page.Items) == 0 {
			return states, nil
		}
		last := page.Items[len(page.Items)-1].State.ID.String()
		q.After = &intent.Bound{Value: &last, ID: last}
	}
}

// actionsOfVersion gives what was done to the resources of a version.
func (s *server) actionsOfVersion(
	ctx context.Context,
	in inEnvironment,
	version int,
	kind intent.ActionKind,
	limit int,
) (map[intent.ResourceID][]intent.Action, error) {
	found, err := s.store.Actions(ctx, in.Env, intent.ResourceID{}, kind, searchWindow)
	if err != nil {
		return nil, err
	}
	out := map[intent.ResourceID][]intent.Action{}
	for _, action := range found {
		if action.Version == version && (limit <= 0 || len(out[action.Resource]) < limit) {
			out[action.Resource] = append(out[action.Resource], action)
		}
	}
	return out, nil
}

// actionOf shows an entry of the action log.
func actionOf(a intent.Action) map[string]any {
	messages := []any{}
	for _, line := range a.Messages {
		messages = append(messages, logLine(line))
	}
	rvid := a.Resource.AtVersion(a.Version)
	changes := map[string]any{}
	if len(a.Changes) > 0 {
		changes[rvid] = a.Changes
	}
	out := map[string]any{
		"environment": a.Environment, "version": a.Version, "resource_version_ids": []string{rvid},
		"action_id": a.ID, "action": a.Kind, "started": stamp(a.Started), "finished": maybe(a.Finished),
		"messages": messages, "status": nil, "change": nil, "changes": changes, "send_event": nil,
	}
	if a.Status != "" {
		out["status"] = a.Status
	}
	if a.Change != "" {
		out["change"] = a.Change
	}
	return out
}

func logLine(l intent.LogLine) map[string]any {
	kwargs := json.RawMessage("{}")
	if len(l.Arguments) > 0 {
		kwargs = l.Arguments
	}
	return map[string]any{
		"level":     l.Level,
		"msg":       l.Message,
		"timestamp": stamp(l.Time),
		"args":      []any{},
		"kwargs":    kwargs,
	}
}
