package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// part: the column holds one of the texts, ignoring case.
func part(column string) filter {
	return filter{column: column, build: func(b *listBuilder, f filter, values []string) (string, error) {
		var any []string
		for _, v := range values {
			if _, err := text.parse(v); err != nil {
				return "", err
			}
			any = append(any, "position(lower("+b.arg(v)+"::text) in lower("+f.column+")) > 0")
		}
		return "(" + strings.Join(any, " OR ") + ")", nil
	}}
}

// exact: the column is one of the texts.
func exact(column string) filter {
	return filter{column: column, build: func(b *listBuilder, f filter, values []string) (string, error) {
		for _, v := range values {
			if _, err := text.parse(v); err != nil {
				return "", err
			}
		}
		return f.column + " = ANY(" + b.arg(values) + "::text[])", nil
	}}
}

// exactOrNot: as exact, and !text means that the column is not that text.
func exactOrNot(column string) filter {
	return filter{column: column, build: func(b *listBuilder, f filter, values []string) (string, error) {
		var is, not []string
		for _, v := range values {
			if _, err := text.parse(v); err != nil {
				return "", err
			}
			if rest, negated := strings.CutPrefix(v, "!"); negated {
				not = append(not, rest)
			} else {
				is = append(is, v)
			}
		}
		var all []string
		if len(is) > 0 {
			all = append(all, f.column+" = ANY("+b.arg(is)+"::text[])")
		}
		if len(not) > 0 {
			all = append(all, f.column+" <> ALL("+b.arg(not)+"::text[])")
		}
		return "(" + strings.Join(all, " AND ") + ")", nil
	}}
}

// truthful: the column is true, or false.
func truthful(column string) filter {
	return filter{column: column, build: func(b *listBuilder, f filter, values []string) (string, error) {
		v, err := single(values)
		if err != nil {
			return "", err
		}
		return f.column + " = " + b.arg(v), nil
	}}
}

// set: the column has a value, or has none.
func set(column string) filter {
	return filter{column: column, build: func(b *listBuilder, f filter, values []string) (string, error) {
		v, err := single(values)
		if err != nil {
			return "", err
		}
		return "(" + f.column + " IS NOT NULL) = " + b.arg(v), nil
	}}
}

func single(values []string) (bool, error) {
	if len(values) != 1 {
		return false, errors.New("only one value is possible")
	}
	return parseBool(values[0])
}

var comparisons = map[string]string{"lt": "<", "le": "<=", "gt": ">", "ge": ">="}

// within: all of the comparisons lt, le, gt, ge hold.
func within(column string, k kind) filter {
	return filter{column: column, kind: k, build: func(b *listBuilder, f filter, values []string) (string, error) {
		var all []string
		for _, v := range values {
			word, bound, ok := strings.Cut(v, ":")
			sign, known := comparisons[strings.ToLower(word)]
			if !ok || !known {
				return "", fmt.Errorf("%q should be lt, le, gt or ge, a colon and a value", v)
			}
			parsed, err := f.kind.parse(bound)
			if err != nil {
				return "", err
			}
			all = append(all, f.column+" "+sign+" "+b.arg(parsed))
		}
		return "(" + strings.Join(all, " AND ") + ")", nil
	}}
}

// severities orders the levels of log lines.
var severities = map[string]int{"TRACE": 3, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}

// atLeast: the column holds this level or a graver one.
func atLeast(column string) filter {
	return filter{column: column, build: func(b *listBuilder, f filter, values []string) (string, error) {
		if len(values) != 1 {
			return "", errors.New("only one value is possible")
		}
		severity, ok := severities[strings.ToUpper(values[0])]
		if !ok {
			return "", fmt.Errorf("%q is not a level: %s", values[0], strings.Join(sortedKeys(severities), ", "))
		}
		return f.column + " >= " + b.arg(severity), nil
	}}
}

// lists are the paged lists. They are filled together with the statements that they begin with.
var lists pagedLists

type pagedLists struct {
	compiles, versions, versionResources, resources, history, logs, parameters, facts, agents, drift, notifications, discovered, deliveries list
}

// newLists makes them. The columns and filters are those of the API.
func newLists() pagedLists {
	return pagedLists{
		compiles: list{
			base:    statements.CompileRows,
			columns: map[string]column{"requested": {"requested", moment}},
			sort:    "requested", desc: true,
			key: column{"id", identity},
			filters: map[string]filter{
				"success": truthful("success"), "started": set("started"), "completed": set("completed"),
				"requested": within("requested", moment),
			},
		},
		versions: list{
			base:    statements.VersionRows,
			columns: map[string]column{"version": {"number", number}},
			sort:    "version", desc: true,
			key: column{"number", number},
			filters: map[string]filter{
				"version": within("number", number), "date": within("created", moment),
				"status": exact("status"), "released": truthful("(released IS NOT NULL)"),
			},
		},
		versionResources: list{
			base: statements.VersionResourceRows,
			columns: map[string]column{
				"resource_type": {
					"type",
					text,
				}, "agent": {"agent", text}, "resource_id_value": {"value", text}, "resource_id": {"id", text},
			},
			sort: "resource_type", desc: true,
			key: column{"id", text},
			filters: map[string]filter{
				"resource_type":     part("type"),
				"agent":             part("agent"),
				"resource_id_value": part("value"),
			},
		},
		resources: list{
			base: statements.ResourceRows, counted: statements.ResourceCounted,
			columns: map[string]column{
				"resource_type": {"type", text}, "agent": {"agent", text}, "resource_id_value": {"value", text},
				"resource_id": {"id", text}, "status": {"status", text},
			},
			sort: "resource_type", desc: true,
			key: column{"id", text},
			filters: map[string]filter{
				"resource_type": part(
					"type",
				), "agent": part("agent"), "resource_id_value": part("value"), "status": exactOrNot("status"),
				"parked": truthful("(parked <> '')"),
			},
		},
		history: list{
			base:    statements.ResourceHistoryRows,
			columns: map[string]column{"date": {"date", moment}},
			sort:    "date", desc: true,
			key: column{"attribute_hash", text},
		},
		logs: list{
			base:    statements.ResourceLogRows,
			columns: map[string]column{"timestamp": {"moment", moment}},
			sort:    "timestamp", desc: true,
			key: column{"line", text},
			filters: map[string]filter{
				"action": exact("kind"), "timestamp": within("moment", moment), "message": part("message"),
				"minimal_log_level": atLeast("severity"),
			},
		},
		parameters: list{
			base: statements.ParameterRows,
			columns: map[string]column{
				"name":    {"name", text},
				"source":  {"source", text},
				"updated": {"updated", moment},
			},
			sort: "name",
			key:  column{"id", identity},
			filters: map[string]filter{
				"name":    part("name"),
				"source":  part("source"),
				"updated": within("updated", moment),
			},
		},
		facts: list{
			base:    statements.FactRows,
			columns: map[string]column{"name": {"name", text}, "resource_id": {"resource", text}},
			sort:    "name",
			key:     column{"id", identity},
			filters: map[string]filter{
				"name":        part("name"),
				"resource_id": part("resource"),
				"expires":     truthful("expires"),
			},
		},
		agents: list{
			base: statements.AgentRows,
			columns: map[string]column{
				"name": {
					"name",
					text,
				}, "process_name": {"process_name", text}, "paused": {"paused", truth}, "status": {"status", text},
			},
			sort: "name",
			key:  column{"name", text},
			filters: map[string]filter{
				"name":         part("name"),
				"process_name": part("process_name"),
				"status":       exact("status"),
			},
		},
		notifications: list{
			base:    statements.NotificationRows,
			columns: map[string]column{"created": {"created", moment}, "last": {"last", moment}},
			sort:    "created", desc: true,
			key: column{"id", identity},
			filters: map[string]filter{
				"title": part(
					"title",
				), "message": part("message"), "read": truthful("read"), "cleared": truthful("cleared"), "severity": exact("severity"),
			},
		},
		discovered: list{
			base: statements.DiscoveredRows,
			columns: map[string]column{
				"discovered_resource_id": {
					"id",
					text,
				}, "resource_type": {"type", text}, "agent": {"agent", text}, "resource_id_value": {"value", text},
			},
			sort: "discovered_resource_id",
			key:  column{"id", text},
			filters: map[string]filter{
				"resource_type": part(
					"type",
				), "agent": part("agent"), "resource_id_value": part("value"), "managed": truthful("managed"),
			},
		},
		deliveries: list{
			base:    statements.DeliveryRows,
			columns: map[string]column{"received": {"received", moment}},
			sort:    "received", desc: true,
			key: column{"id", identity},
			filters: map[string]filter{
				"forge": exact(
					"forge",
				), "repository": part("repository"), "ref": part("ref"), "commit": part("commit"), "event": exact("kind"),
				"state": exact("state"), "received": within("received", moment),
			},
		},
		drift: list{
			base:    statements.DriftRows,
			columns: map[string]column{"since": {"since", moment}, "resource_id": {"resource", text}},
			sort:    "since", desc: true,
			key: column{"id", identity},
			filters: map[string]filter{
				"resource_id": part(
					"resource",
				), "resource": exact("resource"), "attribute": part("attribute"), "open": truthful("(ended IS NULL)"),
				"ending": exact("ending"), "since": within("since", moment),
			},
		},
	}
}

// withoutOrphans leaves orphans out of a list of resources unless the filter on
// the status speaks of them.
func withoutOrphans(q intent.ListQuery) intent.ListQuery {
	for _, v := range q.Filters["status"] {
		if v == string(intent.StatusOrphaned) || v == "!"+string(intent.StatusOrphaned) {
			return q
		}
	}
	q.Filters = maps.Clone(q.Filters)
	if q.Filters == nil {
		q.Filters = make(map[string][]string)
	}
	q.Filters["status"] = append(slices.Clone(q.Filters["status"]), "!"+string(intent.StatusOrphaned))
	return q
}
