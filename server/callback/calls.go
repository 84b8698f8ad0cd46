package callback

import "net/http"

// call describes a call of the API that handlers may make.
type call struct {
	verb string
	path string // with {name} in the place of an argument
	args string // the names of the arguments, in the order in which they may be given by position
	env  string // the argument that names the environment, unless that is tid
}

const listArgs = " limit first_id last_id start end filter sort"

// calls lists the calls that handlers may make, by the names that the API's clients
// use. Handlers can read the data of their environment, and write facts, parameters
// and discovered resources. They cannot deploy, release or change settings, because
// a handler works on one resource.
var calls = map[string]call{
	"get_param": {http.MethodGet, "/api/v1/parameter/{id}", "tid id resource_id", ""},
	"set_param": {
		http.MethodPut, "/api/v1/parameter/{id}",
		"tid id source value resource_id metadata recompile expires", "",
	},
	"delete_param":   {http.MethodDelete, "/api/v1/parameter/{id}", "tid id resource_id", ""},
	"list_params":    {http.MethodPost, "/api/v1/parameter", "tid query", ""},
	"set_parameters": {http.MethodPut, "/api/v1/parameters", "tid parameters", ""},

	"get_parameters": {http.MethodGet, "/api/v2/parameters", "tid" + listArgs, ""},
	"set_parameter":  {http.MethodPut, "/api/v2/parameters/{name}", "tid name source value metadata recompile", ""},
	"get_all_facts":  {http.MethodGet, "/api/v2/facts", "tid" + listArgs, ""},
	"set_fact": {
		http.MethodPut, "/api/v2/facts/{name}",
		"tid name source value resource_id metadata recompile expires", "",
	},
	"get_facts": {http.MethodGet, "/api/v2/resource/{rid}/facts", "tid rid", ""},
	"get_fact":  {http.MethodGet, "/api/v2/resource/{rid}/facts/{id}", "tid rid id", ""},

	"resource_list":    {http.MethodGet, "/api/v2/resource", "tid" + listArgs + " deploy_summary", ""},
	"resource_details": {http.MethodGet, "/api/v2/resource/{rid}", "tid rid", ""},
	"resource_history": {
		http.MethodGet, "/api/v2/resource/{rid}/history",
		"tid rid limit first_id last_id start end sort", "",
	},
	"resource_logs": {http.MethodGet, "/api/v2/resource/{rid}/logs", "tid rid limit start end filter sort", ""},
	"get_resource":  {http.MethodGet, "/api/v1/resource/{id}", "tid id logs log_action log_limit", ""},
	"get_resource_actions": {
		http.MethodGet, "/api/v2/resource_actions",
		"tid resource_type agent attribute attribute_value log_severity limit action_id first_timestamp " +
			"last_timestamp exclude_changes", "",
	},

	"get_resources_in_version": {
		http.MethodGet, "/api/v2/desiredstate/{version}",
		"tid version limit first_id last_id start end filter sort", "",
	},
	"versioned_resource_details": {
		http.MethodGet, "/api/v2/desiredstate/{version}/resource/{rid}",
		"tid version rid", "",
	},
	"list_desired_state_versions": {http.MethodGet, "/api/v2/desiredstate", "tid limit start end filter sort", ""},
	"list_versions":               {http.MethodGet, "/api/v1/version", "tid start limit", ""},
	"get_version":                 {http.MethodGet, "/api/v1/version/{id}", "tid id include_logs log_filter limit", ""},
	"get_environment":             {http.MethodGet, "/api/v1/environment/{id}", "id versions resources", "id"},
	"environment_get":             {http.MethodGet, "/api/v2/environment/{id}", "id details", "id"},
	"is_compiling":                {http.MethodHead, "/api/v1/notify/{id}", "id", "id"},
	"notify_change":               {http.MethodPost, "/api/v1/notify/{id}", "id update metadata", "id"},
	"discovered_resources_get": {
		http.MethodGet, "/api/v2/discovered/{discovered_resource_id}",
		"tid discovered_resource_id", "",
	},
	"discovered_resource_create": {
		http.MethodPost, "/api/v2/discovered/{discovered_resource_id}",
		"tid discovered_resource_id discovery_resource_id values", "",
	},
	"discovered_resource_delete": {
		http.MethodDelete, "/api/v2/discovered/{discovered_resource_id}",
		"tid discovered_resource_id", "",
	},
	"discovered_resources_get_batch":   {http.MethodGet, "/api/v2/discovered", "tid limit start end filter sort", ""},
	"discovered_resource_create_batch": {http.MethodPost, "/api/v2/discovered", "tid discovered_resources", ""},
	"discovered_resource_delete_batch": {http.MethodDelete, "/api/v2/discovered", "tid discovered_resource_ids", ""},
}
