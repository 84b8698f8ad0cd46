package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
)

// dryRunCalls are Inmanta's, and beside them those about dry runs of commits.
func (s *server) dryRunCalls(c *calls) {
	const path, report = "/api/v2/dryrun", "/api/v2/dryrun-report/{report_id}"
	v2(c, http.MethodPost, path+"/{version}", "Start a dry run of a version. The answer is its id.",
		access.StartDryRun, s.startDryRun)
	v2(c, http.MethodPost, path, "Start a dry run of a version or a commit. The answer is its id.",
		access.StartDryRun, s.startDryRun)
	v2(c, http.MethodGet, path, "List the dry runs of all versions and commits, newest first.",
		access.SeeDryRuns, s.listDryRuns)
	v2(c, http.MethodGet, path+"/{version}", "List the dry runs of a version, newest first.",
		access.SeeDryRuns, s.listVersionDryRuns)
	v2(c, http.MethodGet, path+"/{version}/{report_id}", "Show a dry run of a version, with what it found.",
		access.SeeDryRuns, s.getDryRun)
	v2(c, http.MethodGet, report, "Show a dry run, with what it found.", access.SeeDryRuns, s.getDryRun)
	done[nullData](c, http.MethodPost, report+"/cancel", "End a dry run.", access.StartDryRun, s.cancelDryRun)
	const v1 = "/api/v1/dryrun"
	whole(c, http.MethodPost, v1+"/{id}", "Start a dry run of a version.", access.StartDryRun, s.startDryRunV1)
	whole(c, http.MethodGet, v1, "List the dry runs of versions.", access.SeeDryRuns, s.listDryRunsV1)
	whole(c, http.MethodGet, v1+"/{id}", "Show a dry run, with what it found.", access.SeeDryRuns, s.getDryRunV1)
}

// dryRun is a dry run in a list.
type dryRun struct {
	ID          uuid.UUID     `json:"id"`
	Environment uuid.UUID     `json:"environment"`
	Model       *int          `json:"model"`
	Date        timestamp     `json:"date"`
	Total       int           `json:"total"`
	Todo        int           `json:"todo"`
	State       string        `json:"state"`
	Complete    bool          `json:"complete"`
	Unknown     int           `json:"unknown"`
	Ended       *timestamp    `json:"ended"`
	Reason      *string       `json:"reason"`
	Commit      *string       `json:"commit"`
	Compile     *uuid.UUID    `json:"compile"`
	Filter      *dryRunFilter `json:"filter"`
	dryRunOrigin
}

// dryRunOrigin is what a client of dryrun_filtered sent; null for other dry runs.
type dryRunOrigin struct {
	ResourceFilter *map[string]any `json:"resource_filter"`
	Context        *map[string]any `json:"context"`
}

func dryRunOriginOf(r intent.DryRun) dryRunOrigin {
	return dryRunOrigin{objectOf(r.ResourceFilter), objectOf(r.Context)}
}

// objectOf reads an object that the record has; nil: none.
func objectOf(text json.RawMessage) *map[string]any {
	if text == nil {
		return nil
	}
	var out map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&out) != nil {
		return nil // it was an object when it was stored
	}
	return &out
}

type dryRunFilter struct {
	Agents        *[]string `json:"agents"`
	ResourceTypes *[]string `json:"resource_types"`
	ResourceIDs   *[]string `json:"resource_ids"`
}

type dryRunReport struct {
	Summary         dryRunSummary `json:"summary"`
	Diff            []dryRunDiff  `json:"diff"`
	NoLongerManaged []string      `json:"no_longer_managed"`
	// Diagnostics say what is wrong with the model of a commit that does not compile, and CompileReport is the path of
	// the report of that compile.
	Diagnostics   []modelDiagnostic `json:"diagnostics"`
	CompileReport *string           `json:"compile_report"`
}

// modelDiagnostic is one error or warning of a model.
type modelDiagnostic struct {
	Severity diag.Severity `json:"severity"`
	Code     string        `json:"code"`
	Message  string        `json:"message"`
	File     *string       `json:"file"`
	Line     *int          `json:"line"`
	Column   *int          `json:"column"`
	Source   *string       `json:"source"` // the line of the model
	Hint     *string       `json:"hint"`
}

type dryRunSummary struct {
	dryRun
	Counts dryRunCounts `json:"counts"`
}

type dryRunCounts struct {
	Created         int `json:"created"`
	Changed         int `json:"changed"`
	Purged          int `json:"purged"`
	Unchanged       int `json:"unchanged"`
	Unknown         int `json:"unknown"`
	Undefined       int `json:"undefined"`
	NoLongerManaged int `json:"no_longer_managed"`
}

// dryRunDiff is what a dry run found of a resource. Inmanta's clients know no other word than agent_down for what it
// could not tell about; unknown and reason say it better.
type dryRunDiff struct {
	resourceDiff
	Unknown bool    `json:"unknown"`
	Reason  *string `json:"reason"`
	Behind  *string `json:"behind"`
}

// dryRunV1 is a dry run as version 1 shows it.
type dryRunV1 struct {
	ID          uuid.UUID                   `json:"id"`
	Environment uuid.UUID                   `json:"environment"`
	Model       int                         `json:"model"`
	Date        timestamp                   `json:"date"`
	Total       int                         `json:"total"`
	Todo        int                         `json:"todo"`
	Resources   map[string]dryRunResourceV1 `json:"resources"`
	dryRunOrigin
}

type dryRunResourceV1 struct {
	ID         string                            `json:"id"`
	ResourceID string                            `json:"resource_id"`
	IDFields   idFields                          `json:"id_fields"`
	Changes    map[string]intent.AttributeChange `json:"changes"`
}

type idFields struct {
	EntityType     string `json:"entity_type"`
	AgentName      string `json:"agent_name"`
	Attribute      string `json:"attribute"`
	AttributeValue string `json:"attribute_value"`
	Version        int    `json:"version"`
}

type dryRunEnvelope struct {
	DryRun dryRunV1 `json:"dryrun"`
}

type dryRunsEnvelope struct {
	DryRuns []dryRunLineV1 `json:"dryruns"`
}

type dryRunLineV1 struct {
	ID      uuid.UUID `json:"id"`
	Version int       `json:"version"`
	Date    timestamp `json:"date"`
	Total   int       `json:"total"`
	Todo    int       `json:"todo"`
}

// newDryRun chooses what to look at; what is left out chooses all.
type newDryRun struct {
	inEnvironment
	Version   int      `arg:"version"`
	Commit    string   `arg:"commit"`
	Agents    []string `arg:"agents"`
	Types     []string `arg:"resource_types"`
	Resources []string `arg:"resource_ids"`
}

type oneDryRun struct {
	inEnvironment
	// Version must be that of the dry run; 0: any.
	Version int       `arg:"version"`
	ID      uuid.UUID `arg:"report_id,required"`
}

type oneDryRunV1 struct {
	inEnvironment
	ID uuid.UUID `arg:"id,required"`
}

type dryRunsOf struct {
	inEnvironment
	Version int `arg:"version"`
}

func (a newDryRun) filter() (intent.DryRunFilter, error) {
	named, err := parseIDs("resource_ids", a.Resources)
	if err == nil && (isEmpty(a.Agents) || isEmpty(a.Types) || isEmpty(a.Resources)) {
		err = invalid("an empty list chooses nothing; leave it out to choose all")
	}
	return intent.DryRunFilter{Agents: a.Agents, Types: a.Types, Resources: named}, err
}

// isEmpty reports whether a list was given and has nothing in it.
func isEmpty(list []string) bool { return list != nil && len(list) == 0 }

func (s *server) startDryRun(ctx context.Context, a newDryRun) (uuid.UUID, error) {
	filter, err := a.filter()
	if err != nil {
		return uuid.Nil, err
	}
	return s.control.StartDryRun(ctx, a.Env, control.DryRunRequest{
		Version: a.Version, Commit: a.Commit, Filter: filter,
	})
}

func (s *server) startDryRunV1(ctx context.Context, a oneVersionV1) (dryRunEnvelope, error) {
	id, err := s.control.StartDryRun(ctx, a.Env, control.DryRunRequest{Version: a.ID})
	if err != nil {
		return dryRunEnvelope{}, err
	}
	run, _, err := s.store.DryRun(ctx, a.Env, id)
	return dryRunEnvelope{dryRunV1Of(run, nil)}, err
}

func (s *server) listDryRuns(ctx context.Context, a inEnvironment) ([]dryRun, error) {
	runs, err := s.store.DryRuns(ctx, a.Env, 0)
	return listed(runs, dryRunOf), err
}

func (s *server) listVersionDryRuns(ctx context.Context, a oneVersion) ([]dryRun, error) {
	if _, err := s.store.Version(ctx, a.Env, a.Version); err != nil {
		return nil, err
	}
	runs, err := s.store.DryRuns(ctx, a.Env, a.Version)
	return listed(runs, dryRunOf), err
}

// listDryRunsV1 lists those that have a version by now; the model of the others is not there yet.
func (s *server) listDryRunsV1(ctx context.Context, a dryRunsOf) (dryRunsEnvelope, error) {
	out := dryRunsEnvelope{[]dryRunLineV1{}}
	runs, err := s.store.DryRuns(ctx, a.Env, a.Version)
	for _, r := range runs {
		if r.Version > 0 {
			out.DryRuns = append(out.DryRuns, dryRunLineV1{
				ID: r.ID, Version: r.Version, Date: stamp(r.Date), Total: r.Total, Todo: r.Todo,
			})
		}
	}
	return out, err
}

func (s *server) getDryRun(ctx context.Context, a oneDryRun) (dryRunReport, error) {
	run, diffs, err := s.store.DryRun(ctx, a.Env, a.ID)
	if err == nil && a.Version != 0 && run.Version != a.Version {
		err = fault.New("api", fault.NotFound, "this version has no such dry run")
	}
	if err != nil {
		return dryRunReport{}, err
	}
	gone, err := s.control.NoLongerManaged(ctx, run)
	if err != nil {
		return dryRunReport{}, err
	}
	diagnostics, err := s.control.DryRunDiagnostics(ctx, run)
	var report *string
	if run.Commit != "" && run.Compile != nil {
		report = new("/api/v2/compilereport/" + run.Compile.String())
	}
	counts := map[intent.DiffKind]int{}
	for _, d := range diffs {
		counts[d.Kind]++
	}
	shown := listed(diffs, dryRunDiffOf)
	if err := s.addLines(ctx, a.Env, diffs, func(i int) map[string]attributeDiff {
		return shown[i].Attributes
	}); err != nil {
		return dryRunReport{}, err
	}
	return dryRunReport{
		Summary: dryRunSummary{dryRunOf(run), dryRunCounts{
			Created: counts[intent.DiffAdded], Changed: counts[intent.DiffModified],
			Purged: counts[intent.DiffDeleted], Unchanged: counts[intent.DiffUnmodified],
			Unknown:         counts[intent.DiffUnknown] + counts[intent.DiffAgentDown],
			Undefined:       counts[intent.DiffUndefined] + counts[intent.DiffSkipped],
			NoLongerManaged: len(gone),
		}},
		Diff: shown, NoLongerManaged: ids(gone),
		Diagnostics: listed(diagnostics, modelDiagnosticOf), CompileReport: report,
	}, err
}

func modelDiagnosticOf(d diag.Diagnostic) modelDiagnostic {
	out := modelDiagnostic{
		Severity: d.Severity, Code: d.Code, Message: d.Message, Source: orNull(d.Source), Hint: orNull(d.Hint),
	}
	if l := d.Location; l != nil {
		out.File, out.Line, out.Column = orNull(l.File), orNull(l.Line), orNull(l.Column)
	}
	return out
}

func (s *server) getDryRunV1(ctx context.Context, a oneDryRunV1) (dryRunEnvelope, error) {
	run, diffs, err := s.store.DryRun(ctx, a.Env, a.ID)
	return dryRunEnvelope{dryRunV1Of(run, diffs)}, err
}

func (s *server) cancelDryRun(ctx context.Context, a oneDryRun) error {
	return s.control.CancelDryRun(ctx, a.Env, a.ID)
}

func dryRunOf(r intent.DryRun) dryRun {
	out := dryRun{
		ID: r.ID, Environment: r.Environment, Model: orNull(r.Version), Date: stamp(r.Date), Total: r.Total,
		Todo: r.Todo, State: r.State(), Complete: r.Complete(), Unknown: r.Unknown, Ended: maybe(r.Ended),
		Reason: orNull(r.Reason), Commit: orNull(r.Commit), dryRunOrigin: dryRunOriginOf(r),
	}
	if r.Commit != "" {
		out.Compile = r.Compile
	}
	if f := r.Filter; !f.IsZero() {
		out.Filter = &dryRunFilter{listOrNull(f.Agents), listOrNull(f.Types), listOrNull(ids(f.Resources))}
	}
	return out
}

func dryRunDiffOf(d intent.ResourceDiff) dryRunDiff {
	out := dryRunDiff{resourceDiff: diffOf(d), Unknown: d.Kind.Unknown(), Reason: orNull(d.Reason)}
	if d.Kind == intent.DiffUnknown {
		out.Status = intent.DiffAgentDown
	}
	if !d.Behind.IsZero() {
		out.Behind = new(d.Behind.String())
	}
	return out
}

func dryRunV1Of(r intent.DryRun, diffs []intent.ResourceDiff) dryRunV1 {
	resources := map[string]dryRunResourceV1{}
	for _, d := range diffs {
		changes := d.Attributes
		if changes == nil {
			changes = map[string]intent.AttributeChange{}
		}
		rvid := d.ID.AtVersion(r.Version)
		resources[rvid] = dryRunResourceV1{
			ID: rvid, ResourceID: d.ID.String(), Changes: changes,
			IDFields: idFields{
				EntityType: d.ID.Type, AgentName: d.ID.Agent, Attribute: d.ID.Attribute, AttributeValue: d.ID.Value,
				Version: r.Version,
			},
		}
	}
	return dryRunV1{
		ID: r.ID, Environment: r.Environment, Model: r.Version, Date: stamp(r.Date), Total: r.Total, Todo: r.Todo,
		Resources: resources, dryRunOrigin: dryRunOriginOf(r),
	}
}
