package store

import "ordain.dev/ordain/internal/intent"

// The paged lists, each with the method of Store that returns its pages. Their fields are those of the API.
var (
	// CompileList is the list of Store.Compiles.
	CompileList = &List{
		Fields: []Field{
			{"requested", Time, true, InRange, "requested"},
			{"success", Boolean, false, Is, "success"},
			{"started", Time, false, IsSet, "started"},
			{"completed", Time, false, IsSet, "completed"},
			{"trigger", Text, false, EqualsOrNot, "trigger_type"},
		},
		Sort: "requested", Desc: true, ID: UUID,
		rows: &statements.CompileRows, key: column{"id", UUID},
	}

	// VersionList is the list of Store.Versions.
	VersionList = &List{
		Fields: []Field{
			{"version", Number, true, InRange, "number"},
			{"date", Time, false, InRange, "created"},
			{"status", Text, false, Equals, "status"},
			{"released", Time, false, IsSet, "released"},
		},
		Sort: "version", Desc: true,
		rows: &statements.VersionRows, key: column{"number", Number},
	}

	// VersionResourceList is the list of Store.VersionResourcePage.
	VersionResourceList = &List{
		Fields: []Field{
			{"resource_type", Text, true, Contains, "type"},
			{"agent", Text, true, Contains, "agent"},
			{"resource_id_value", Text, true, Contains, "value"},
			{"resource_id", Text, true, NoFilter, "id"},
		},
		Sort: "resource_type", Desc: true, ID: Text,
		rows: &statements.VersionResourceRows, key: column{"id", Text},
	}

	// VersionMemberList is the list of Store.VersionMembers.
	VersionMemberList = &List{
		Fields: []Field{
			{"resource_type", Text, true, Equals, "type"},
			{"agent", Text, true, Contains, "agent"},
			{"resource_id_value", Text, true, Contains, "value"},
			{"resource_id", Text, true, NoFilter, "id"},
			{"status", Text, true, Equals, "standing"},
		},
		Sort: "resource_type", ID: Text,
		rows: &statements.VersionMemberRows, key: column{"id", Text}, planned: true,
	}

	// ResourceList is the list of Store.Resources.
	ResourceList = &List{
		Fields: []Field{
			{"resource_type", Text, true, Contains, "type"},
			{"agent", Text, true, Contains, "agent"},
			{"resource_id_value", Text, true, Contains, "value"},
			{"resource_id", Text, true, NoFilter, "id"},
			{"status", Text, true, EqualsOrNot, "status"},
			{"parked", Boolean, false, Is, "(parked <> '')"},
		},
		Sort: "resource_type", Desc: true, ID: Text,
		rows: &statements.ResourceRows, counted: &statements.ResourceCounted, key: column{"id", Text}, filled: true,
		filtersPlanned: true,
	}

	// ResourceHistoryList is the list of Store.ResourceHistory.
	ResourceHistoryList = &List{
		Fields: []Field{{"date", Time, true, NoFilter, "date"}},
		Sort:   "date", Desc: true, ID: Text,
		rows: &statements.ResourceHistoryRows, key: column{"attribute_hash", Text},
	}

	// ResourceLogList is the list of Store.ResourceLogs.
	ResourceLogList = &List{
		Fields: []Field{
			{"timestamp", Time, true, InRange, "moment"},
			{"action", Text, false, Equals, "kind"},
			{"message", Text, false, Contains, "message"},
			{"minimal_log_level", Level, false, AtLeast, "severity"},
		},
		Sort: "timestamp", Desc: true,
		rows: &statements.ResourceLogRows, key: column{"line", Text},
	}

	// ParameterList is the list of Store.Parameters, of parameters.
	ParameterList = &List{
		Fields: []Field{
			{"name", Text, true, Contains, "name"},
			{"source", Text, true, Contains, "source"},
			{"updated", Time, true, InRange, "updated"},
		},
		Sort: "name", ID: UUID,
		rows: &statements.ParameterRows, key: column{"id", UUID},
	}

	// FactList is the list of Store.Parameters, of facts.
	FactList = &List{
		Fields: []Field{
			{"name", Text, true, Contains, "name"},
			{"resource_id", Text, true, Contains, "resource"},
			{"expires", Boolean, false, Is, "expires"},
		},
		Sort: "name", ID: UUID,
		rows: &statements.FactRows, key: column{"id", UUID},
	}

	// AgentList is the list of Store.Agents.
	AgentList = &List{
		Fields: []Field{
			{"name", Text, true, Contains, "name"},
			{"process_name", Text, true, Contains, "process_name"},
			{"paused", Boolean, true, NoFilter, "paused"},
			{"status", Text, true, Equals, "status"},
		},
		Sort: "name", ID: Text,
		rows: &statements.AgentRows, key: column{"name", Text},
	}

	// NotificationList is the list of Store.Notifications.
	NotificationList = &List{
		Fields: []Field{
			{"created", Time, true, NoFilter, "created"},
			{"last", Time, true, NoFilter, "last"},
			{"title", Text, false, Contains, "title"},
			{"message", Text, false, Contains, "message"},
			{"severity", Text, false, Equals, "severity"},
			{"read", Boolean, false, Is, "read"},
			{"cleared", Boolean, false, Is, "cleared"},
		},
		Sort: "created", Desc: true, ID: UUID,
		rows: &statements.NotificationRows, key: column{"id", UUID},
	}

	// AuditList is the list of Store.Audit.
	AuditList = &List{
		Fields: []Field{
			{"at", Time, true, InRange, "at"},
			{"actor", Text, true, Contains, "actor"},
			{"verb", Text, true, Contains, "verb"},
			{"outcome", Text, false, Equals, "outcome"},
			{"subject", Text, false, Contains, "subject"},
			{"address", Text, false, Equals, "address"},
			{"project", Text, false, Equals, "project_name"},
			{"environment", Text, false, Equals, "environment_name"},
		},
		Sort: "at", Desc: true, ID: Number,
		rows: &statements.AuditRows, key: column{"id", Number},
	}

	// DiscoveredList is the list of Store.DiscoveredList.
	DiscoveredList = &List{
		Fields: []Field{
			{"discovered_resource_id", Text, true, NoFilter, "id"},
			{"resource_type", Text, true, Contains, "type"},
			{"agent", Text, true, Contains, "agent"},
			{"resource_id_value", Text, true, Contains, "value"},
			{"managed", Boolean, false, Is, "managed"},
		},
		Sort: "discovered_resource_id", ID: Text,
		rows: &statements.DiscoveredRows, key: column{"id", Text},
	}

	// DeliveryList is the list of Store.Deliveries.
	DeliveryList = &List{
		Fields: []Field{
			{"received", Time, true, InRange, "received"},
			{"forge", Text, false, Equals, "forge"},
			{"repository", Text, false, Contains, "repository"},
			{"ref", Text, false, Contains, "ref"},
			{"commit", Text, false, Contains, "commit"},
			{"event", Text, false, Equals, "kind"},
			{"state", Text, false, Equals, "state"},
		},
		Sort: "received", Desc: true, ID: UUID,
		rows: &statements.DeliveryRows, key: column{"id", UUID},
	}

	// ProcessList is the list of Store.Processes.
	ProcessList = &List{
		Fields: []Field{
			{"id", Number, true, NoFilter, "id"},
			{"made", Time, true, InRange, "made"},
			{"state", Text, false, Equals, "state"},
			{"name", Text, false, Contains, "name"},
			{"resource_type", Text, false, Equals, "resource_type"},
			{"resource_id", Text, false, Equals, "resource_id"},
		},
		Sort: "made", Desc: true, ID: Number,
		rows: &statements.ProcessRows, key: column{"id", Number},
	}

	// OrphanList is the list of Store.Orphans.
	OrphanList = &List{
		Fields: []Field{
			{"resource_id", Text, true, Contains, "id"},
			{"resource_type", Text, true, Contains, "type"},
			{"agent", Text, true, Contains, "agent"},
			{"resource_id_value", Text, true, Contains, "value"},
			{"last_version", Number, true, InRange, "last_version"},
		},
		Sort: "last_version", Desc: true, ID: Text,
		rows: &statements.OrphanRows, key: column{"id", Text},
	}

	// DriftList is the list of Store.Drift.
	DriftList = &List{
		Fields: []Field{
			{"since", Time, true, InRange, "since"},
			{"resource_id", Text, true, Contains, "resource"},
			{"resource", Text, false, Equals, "resource"},
			{"attribute", Text, false, Contains, "attribute"},
			{"open", Boolean, false, Is, "(ended IS NULL)"},
			{"ending", Text, false, Equals, "ending"},
		},
		Sort: "since", Desc: true, ID: UUID,
		rows: &statements.DriftRows, key: column{"id", UUID},
	}
)

// withoutOrphans returns the condition that leaves orphans out of a list of resources, unless its filter on the status
// mentions them. It is no filter with a parameter, since the database would plan for any list of states and take all
// resources for the few that have none of ten, and sort 100,000 instead of following an index.
func withoutOrphans(q intent.ListQuery) []string {
	for _, v := range q.Filters["status"] {
		if v == string(intent.StatusOrphaned) || v == "!"+string(intent.StatusOrphaned) {
			return nil
		}
	}
	return []string{"l.orphaned = 0"}
}
