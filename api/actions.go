package api

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// resourceAction is an entry of the action log.
type resourceAction struct {
	Environment        uuid.UUID         `json:"environment"`
	Version            int               `json:"version"`
	ResourceVersionIDs []string          `json:"resource_version_ids"`
	ActionID           uuid.UUID         `json:"action_id"`
	Action             intent.ActionKind `json:"action"`
	Started            timestamp         `json:"started"`
	Finished           *timestamp        `json:"finished"`
	Messages           []logLine         `json:"messages"`
	Status             *intent.Status    `json:"status"`
	Change             *intent.Change    `json:"change"`
	Changes            *actionChanges    `json:"changes"`
	SendEvent          *bool             `json:"send_event"`
}

// actionChanges are the changed attributes by resource version id.
type actionChanges map[string]map[string]intent.AttributeChange

type logLine struct {
	Level     string          `json:"level"`
	Msg       string          `json:"msg"`
	Timestamp timestamp       `json:"timestamp"`
	Args      []any           `json:"args"`
	Kwargs    json.RawMessage `json:"kwargs"`
}

// actionLogLine is a line of the log of a resource.
type actionLogLine struct {
	logLine
	ActionID uuid.UUID         `json:"action_id"`
	Action   intent.ActionKind `json:"action"`
}

type foundActions struct {
	Data  []resourceAction `json:"data"`
	Links actionLinks      `json:"links"`
}

// actionLinks lead to older and newer actions; a search without a limit has none.
type actionLinks struct {
	Next string `json:"next,omitempty"`
	Prev string `json:"prev,omitempty"`
}

type actionSearch struct {
	inEnvironment
	Type           string     `arg:"resource_type"`
	Agent          string     `arg:"agent"`
	Attribute      string     `arg:"attribute"`
	Value          string     `arg:"attribute_value"`
	Severity       string     `arg:"log_severity"`
	Limit          int        `arg:"limit"`
	ActionID       *uuid.UUID `arg:"action_id"`
	First          *string    `arg:"first_timestamp"`
	Last           *string    `arg:"last_timestamp"`
	ExcludeChanges []string   `arg:"exclude_changes"`
}

// searchWindow is how far back the actions of one version are looked for.
const searchWindow = 10_000

// searchActions searches the action log, newest first.
func (s *server) searchActions(ctx context.Context, a actionSearch) (foundActions, error) {
	out := foundActions{Data: []resourceAction{}}
	switch {
	case a.Attribute == "" != (a.Value == ""):
		return out, invalid("attribute and attribute_value are used together")
	case a.First != nil && a.Last != nil:
		return out, invalid("only one of first_timestamp and last_timestamp can be used at a time")
	case a.ActionID != nil && a.First == nil && a.Last == nil:
		return out, invalid("action_id needs first_timestamp or last_timestamp, the time at which that action began")
	case a.Limit > store.MaxPage:
		return out, invalid("the parameter limit can not exceed %d", store.MaxPage)
	}
	if a.Severity != "" && severity(a.Severity) < 0 {
		return out, invalid("log_severity: want %s", strings.Join(severities, ", "))
	}
	after, before, err := window(a.First, a.Last)
	if err != nil {
		return out, err
	}
	q := store.ActionSearch{
		Type: a.Type, Agent: a.Agent, Attribute: a.Attribute, Value: a.Value, Level: a.Severity,
		Without: a.ExcludeChanges, After: after, Before: before, Limit: a.Limit,
	}
	if a.ActionID != nil {
		q.AtID = *a.ActionID
	}
	found, err := s.store.SearchActions(ctx, a.Env, q)
	out.Data = listed(found, actionOf)
	if a.Limit > 0 && len(found) > 0 {
		out.Links.Next = a.link("last_timestamp", found[len(found)-1])
		out.Links.Prev = a.link("first_timestamp", found[0])
	}
	return out, err
}

// link is the address of the actions beside one, with the same filters.
func (a actionSearch) link(side string, at intent.Action) string {
	out := "/api/v2/resource_actions?limit=" + strconv.Itoa(a.Limit)
	add := func(name, value string) {
		if value != "" {
			out += "&" + name + "=" + escape(value)
		}
	}
	add("resource_type", a.Type)
	add("agent", a.Agent)
	add("attribute", a.Attribute)
	add("attribute_value", a.Value)
	add("log_severity", a.Severity)
	for _, change := range a.ExcludeChanges {
		add("exclude_changes", change)
	}
	add(side, formatTime(at.Started))
	add("action_id", at.ID.String())
	return out
}

// severities are the levels of log lines.
var severities = []string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}

func severity(level string) int { return slices.Index(severities, strings.ToUpper(level)) }

// state returns the state of a resource; nil when the active version has no such resource.
func (s *server) state(
	ctx context.Context, env intent.EnvironmentID, id intent.ResourceID,
) (*intent.ResourceState, error) {
	d, err := s.store.Resource(ctx, env, id)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return &d.State, err
}

// statuses returns the state of every resource of the active version.
func (s *server) statuses(
	ctx context.Context, env intent.EnvironmentID,
) (map[intent.ResourceID]*intent.ResourceState, error) {
	states := map[intent.ResourceID]*intent.ResourceState{}
	q := intent.ListQuery{Limit: store.MaxPage, Sort: "resource_id"}
	for {
		found, err := s.store.Resources(ctx, env, q)
		if err != nil {
			return nil, err
		}
		for _, row := range found.Items {
			states[row.State.ID] = &row.State
		}
		if found.After == 0 || len(found.Items) == 0 {
			return states, nil
		}
		last := found.Items[len(found.Items)-1].State.ID.String()
		q.After = &intent.Bound{Value: &last, ID: last}
	}
}

// actionsOfVersion returns what was done to the resources of a version.
func (s *server) actionsOfVersion(
	ctx context.Context, env intent.EnvironmentID, version int, kind intent.ActionKind, limit int,
) (map[intent.ResourceID][]intent.Action, error) {
	found, err := s.store.Actions(ctx, env, intent.ResourceID{}, kind, searchWindow)
	out := map[intent.ResourceID][]intent.Action{}
	for _, action := range found {
		if action.Version == version && (limit <= 0 || len(out[action.Resource]) < limit) {
			out[action.Resource] = append(out[action.Resource], action)
		}
	}
	return out, err
}

func actionOf(a intent.Action) resourceAction {
	rvid := a.Resource.AtVersion(a.Version)
	var changes *actionChanges // null when nothing changed, as clients know it
	if len(a.Changes) > 0 {
		changes = &actionChanges{rvid: a.Changes}
	}
	return resourceAction{
		Environment: a.Environment, Version: a.Version, ResourceVersionIDs: []string{rvid}, ActionID: a.ID,
		Action: a.Kind, Started: stamp(a.Started), Finished: maybe(a.Finished), Messages: listed(a.Messages, logLineOf),
		Status: orNull(a.Status), Change: orNull(a.Change), Changes: changes,
	}
}

func logLineOf(l intent.LogLine) logLine {
	kwargs := json.RawMessage("{}")
	if len(l.Arguments) > 0 {
		kwargs = l.Arguments
	}
	return logLine{Level: l.Level, Msg: l.Message, Timestamp: stamp(l.Time), Args: []any{}, Kwargs: kwargs}
}
