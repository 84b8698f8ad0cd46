package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

func (s *server) compileCalls(c *calls) {
	const notify, report = "/api/v1/notify/{id}", "/api/v2/compilereport"
	whole(c, http.MethodPost, notify, "Ask for a compile.", access.Compile, s.requestCompile)
	whole(c, http.MethodGet, notify, "Ask for a compile, as simple webhooks do.",
		access.Compile, s.requestCompileByGet, acts)
	whole(c, http.MethodHead, notify, "Tell whether the environment compiles: 200, or 204 when it does not.",
		access.SeeCompiles, s.isCompiling)
	whole(c, http.MethodGet, "/api/v1/compilequeue", "List the compiles that have not ended, oldest first.",
		access.SeeCompiles, s.compileQueue)
	whole(c, http.MethodGet, report, "List the compiles.",
		access.SeeCompiles, s.listCompiles, pagesOf(store.CompileList))
	v2(c, http.MethodGet, report+"/{id}", "Show a compile with its stages.", access.SeeCompiles, s.getCompile)
	v2(c, http.MethodGet, "/api/v2/compiledata/{id}", "Show the errors of a compile.",
		access.SeeCompiles, s.getCompileData)
	whole(c, http.MethodGet, "/api/v1/compilereport", "List the compiles by the time they started, newest first.",
		access.SeeCompiles, s.listCompilesV1)
	whole(c, http.MethodGet, "/api/v1/compilereport/{id}", "Show a compile, or the one that answered its request.",
		access.SeeCompiles, s.getCompileV1)
}

// compileRequested is the answer to a request for a compile.
type compileRequested struct {
	Metadata *warnings `json:"metadata,omitempty"`
}

type warnings struct {
	Warnings []string `json:"warnings"`
}

// queuedCompile is what every answer about a compile has.
type queuedCompile struct {
	ID uuid.UUID `json:"id"`
	// RemoteID is the id that the sender of the request chose. The calls of the API let the server choose it, so it is
	// the same as ID.
	RemoteID                      *uuid.UUID        `json:"remote_id"`
	Environment                   uuid.UUID         `json:"environment"`
	Requested                     timestamp         `json:"requested"`
	Started                       *timestamp        `json:"started"`
	DoExport                      bool              `json:"do_export"`
	ForceUpdate                   bool              `json:"force_update"`
	Metadata                      map[string]any    `json:"metadata"`
	MergeableEnvironmentVariables map[string]string `json:"mergeable_environment_variables"`
	RequestedEnvironmentVariables map[string]string `json:"requested_environment_variables"`
	EnvironmentVariables          map[string]string `json:"environment_variables"`
	Partial                       bool              `json:"partial"`
	RemovedResourceSets           []string          `json:"removed_resource_sets"`
	ExporterPlugin                *string           `json:"exporter_plugin"`
	NotifyFailedCompile           *bool             `json:"notify_failed_compile"`
	FailedCompileMessage          *string           `json:"failed_compile_message"`
	Links                         struct{}          `json:"links"`
}

// compile is a compile in a list.
type compile struct {
	queuedCompile
	Completed *timestamp `json:"completed"`
	Success   *bool      `json:"success"`
	Version   *int       `json:"version"`
}

// compileReport is a compile with what it did.
type compileReport struct {
	compile
	CompileData *compileData   `json:"compile_data"`
	Reports     []compileStage `json:"reports"`
}

// compileV1 is a compile as version 1 shows it.
type compileV1 struct {
	compile
	CompileData              *compileData      `json:"compile_data"`
	UsedEnvironmentVariables map[string]string `json:"used_environment_variables"`
	Handled                  bool              `json:"handled"`
	SubstituteCompileID      *uuid.UUID        `json:"substitute_compile_id"`
	SoftDelete               bool              `json:"soft_delete"`
	ReinstallProjectAndVenv  bool              `json:"reinstall_project_and_venv"`
}

type compileReportV1 struct {
	compileV1
	Reports []compileStageV1 `json:"reports"`
}

// compileStageV1 also names the compile that it belongs to.
type compileStageV1 struct {
	compileStage
	Compile uuid.UUID `json:"compile"`
}

type compileReportEnvelope struct {
	Report compileReportV1 `json:"report"`
}

type compileReportsEnvelope struct {
	Reports []compileV1 `json:"reports"`
}

type compileQueueEnvelope struct {
	Queue []queuedCompile `json:"queue"`
}

type compileStage struct {
	ID         uuid.UUID  `json:"id"`
	Started    timestamp  `json:"started"`
	Completed  *timestamp `json:"completed"`
	Command    string     `json:"command"`
	Name       string     `json:"name"`
	Outstream  string     `json:"outstream"`
	Errstream  string     `json:"errstream"`
	ReturnCode *int       `json:"returncode"`
}

// compileData are the errors of a compile as clients know them: lines and characters count from 0.
type compileData struct {
	Errors []compileError `json:"errors"`
}

type compileError struct {
	Category string         `json:"category"`
	Type     string         `json:"type"`
	Message  string         `json:"message"`
	Location *errorLocation `json:"location"`
}

type errorLocation struct {
	URI   string     `json:"uri"`
	Range errorRange `json:"range"`
}

type errorRange struct {
	Start errorPosition `json:"start"`
	End   errorPosition `json:"end"`
}

type errorPosition struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type compileByGet struct {
	oneEnvironment
	Update    bool `arg:"update"`
	Reinstall bool `arg:"reinstall"`
}

func (a *compileByGet) setDefaults() { a.Update = true }

type newCompile struct {
	compileByGet
	Metadata map[string]any `arg:"metadata"`
	// Partial compiles some resource sets only.
	Partial     bool     `arg:"partial"`
	RemovedSets []string `arg:"removed_resource_sets"`
}

type oneCompile struct {
	ID uuid.UUID `arg:"id,required"`
}

// compileOfAny are the arguments of calls that find a compile without being told its environment.
type compileOfAny struct {
	oneCompile
}

type oneCompileIn struct {
	inEnvironment
	oneCompile
}

// requestCompile asks for a compile and answers at once.
func (s *server) requestCompile(ctx context.Context, a newCompile) (compileRequested, error) {
	if len(a.Metadata) == 0 {
		a.Metadata = map[string]any{"type": "api", "message": "Recompile trigger through API call"}
	}
	trigger := intent.Trigger{Type: "api"}
	if t, ok := a.Metadata["type"].(string); ok && t != "" {
		trigger.Type = t
	}
	trigger.Message, _ = a.Metadata["message"].(string)
	_, warning, err := s.control.RequestCompile(ctx, a.ID, control.CompileRequest{
		Update: a.Update, Reinstall: a.Reinstall, Metadata: a.Metadata, Trigger: trigger,
		Partial: a.Partial, RemovedSets: a.RemovedSets,
	})
	if warning == "" {
		return compileRequested{}, err
	}
	return compileRequested{&warnings{[]string{warning}}}, err
}

func (s *server) requestCompileByGet(ctx context.Context, a compileByGet) (compileRequested, error) {
	return s.requestCompile(ctx, newCompile{compileByGet: a})
}

// compiling answers whether an environment compiles, by the status code alone.
type compiling bool

func (c compiling) statusCode() int {
	if c {
		return http.StatusOK
	}
	return http.StatusNoContent
}

func (s *server) isCompiling(ctx context.Context, a oneEnvironment) (compiling, error) {
	yes, err := s.control.IsCompiling(ctx, a.ID)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return compiling(yes), err
}

func (s *server) compileQueue(ctx context.Context, a inEnvironment) (compileQueueEnvelope, error) {
	queue, err := s.store.OpenCompiles(ctx, a.Env)
	return compileQueueEnvelope{listed(queue, queuedCompileOf)}, err
}

func (s *server) listCompiles(ctx context.Context, a pageIn) (page[compile], error) {
	q, err := a.query(store.CompileList)
	if err != nil {
		return page[compile]{}, err
	}
	found, err := s.store.Compiles(ctx, a.Env, q)
	return pageOf(address{path: "/api/v2/compilereport", list: store.CompileList}, q, found, compileOf,
		func(c intent.Compile) place { return atTime(c.Requested, c.ID.String()) }), err
}

func (s *server) getCompile(ctx context.Context, a oneCompileIn) (compileReport, error) {
	c, stages, err := s.store.Compile(ctx, a.ID)
	if fault.Is(err, fault.NotFound) || err == nil && c.Environment != a.Env {
		err = fault.New("api", fault.NotFound, "The compile with the given id does not exist.")
	}
	return compileReport{compileOf(c), compileDataOf(c), listed(stages, stageOf)}, err
}

// visibleCompile returns a compile of any environment, if the sender may see it; otherwise the error is that of an id
// that does not exist.
func (s *server) visibleCompile(ctx context.Context, id uuid.UUID) (intent.Compile, []intent.Stage, error) {
	c, stages, err := s.store.Compile(ctx, id)
	if err != nil {
		return c, stages, err
	}
	e, err := s.store.Environment(ctx, c.Environment)
	if err != nil {
		return intent.Compile{}, nil, err
	}
	unseen := fault.New("api", fault.NotFound, "there is no such compile")
	if err := access.Check(ctx, access.SeeCompiles, access.TargetOf(e), unseen); err != nil {
		return intent.Compile{}, nil, err
	}
	return c, stages, nil
}

func (s *server) getCompileData(ctx context.Context, a compileOfAny) (*compileData, error) {
	c, _, err := s.visibleCompile(ctx, a.ID)
	return compileDataOf(c), err
}

func (s *server) getCompileV1(ctx context.Context, a compileOfAny) (compileReportEnvelope, error) {
	c, stages, err := s.visibleCompile(ctx, a.ID)
	if err != nil {
		return compileReportEnvelope{}, as404(err, "")
	}
	if c.Substitute != nil {
		c, stages, err = s.store.Compile(ctx, *c.Substitute)
	}
	return compileReportEnvelope{compileReportV1{compileV1Of(c), listed(stages, func(t intent.Stage) compileStageV1 {
		return compileStageV1{stageOf(t), c.ID}
	})}}, err
}

// oldWindow are the arguments of paging in lists of version 1.
type oldWindow struct {
	inEnvironment
	Start *string `arg:"start"`
	End   *string `arg:"end"`
	Limit int     `arg:"limit"`
}

// listCompilesV1 lists compiles by the time they started, newest first. The store sorts them by their request, so a
// window of its answer is sorted out here.
func (s *server) listCompilesV1(ctx context.Context, a oldWindow) (compileReportsEnvelope, error) {
	out := compileReportsEnvelope{Reports: []compileV1{}}
	q, err := paging{Limit: a.Limit}.query(store.CompileList)
	if err != nil {
		return out, err
	}
	after, before, err := window(a.Start, a.End)
	if err != nil {
		return out, err
	}
	wanted := q.Limit
	q.Limit = store.MaxPage
	found, err := s.store.Compiles(ctx, a.Env, q)
	for _, c := range found.Items {
		started := c.Requested // a request that waits counts by when it was made
		if c.Started != nil {
			started = *c.Started
		}
		if len(out.Reports) < wanted && (after == nil || started.After(*after)) &&
			(before == nil || started.Before(*before)) {
			out.Reports = append(out.Reports, compileV1Of(c))
		}
	}
	return out, err
}

func queuedCompileOf(c intent.Compile) queuedCompile {
	metadata := map[string]any{}
	maps.Copy(metadata, c.Metadata)
	if metadata["type"] == nil {
		metadata["type"] = c.Trigger.Type
	}
	if metadata["message"] == nil {
		metadata["message"] = c.Trigger.Message
	}
	if c.Revision != nil {
		metadata["commit"], metadata["branch"], metadata["author"], metadata["subject"] =
			c.Revision.Commit, c.Revision.Branch, c.Revision.Author, c.Revision.Subject
	}
	if c.SupersededBy != nil {
		metadata["superseded_by"] = c.SupersededBy
	}
	if c.Cancelled != nil {
		metadata["cancelled_by"], metadata["cancelled_why"] = c.Cancelled.By, c.Cancelled.Reason
	}
	variables := c.Variables
	if variables == nil {
		variables = map[string]string{}
	}
	return queuedCompile{
		ID: c.ID, RemoteID: &c.ID, Environment: c.Environment, Requested: stamp(c.Requested), Started: maybe(c.Started),
		DoExport: c.Export, ForceUpdate: c.Update, Metadata: metadata,
		MergeableEnvironmentVariables: map[string]string{}, RequestedEnvironmentVariables: variables,
		EnvironmentVariables: variables, Partial: c.Partial, RemovedResourceSets: notNil(c.RemovedSets),
	}
}

func compileOf(c intent.Compile) compile {
	return compile{queuedCompileOf(c), maybe(c.Completed), c.Success, c.Version}
}

func compileV1Of(c intent.Compile) compileV1 {
	out := compileV1{
		compile: compileOf(c), CompileData: compileDataOf(c), Handled: c.Completed != nil,
		SubstituteCompileID: c.Substitute, ReinstallProjectAndVenv: c.Reinstall,
	}
	out.UsedEnvironmentVariables = out.EnvironmentVariables
	return out
}

func stageOf(s intent.Stage) compileStage {
	return compileStage{
		ID: s.ID, Started: stamp(s.Started), Completed: maybe(s.Completed), Command: s.Command, Name: s.Name,
		Outstream: s.Output, Errstream: s.ErrOutput, ReturnCode: s.ReturnCode,
	}
}

// compileDataOf shows the errors of a compile: nil when it has not ended, and none when it succeeded.
func compileDataOf(c intent.Compile) *compileData {
	var diagnostics []diag.Diagnostic
	if len(c.Diagnostics) == 0 || json.Unmarshal(c.Diagnostics, &diagnostics) != nil {
		if c.Success == nil || !*c.Success {
			return nil
		}
	}
	out := &compileData{Errors: []compileError{}}
	for _, d := range diagnostics {
		if d.Severity == diag.Warning {
			continue
		}
		kind, message := d.ForPrograms()
		out.Errors = append(out.Errors, compileError{
			Category: category(d), Type: kind, Message: message, Location: locationOf(d.Location),
		})
	}
	return out
}

// category is one of the three that clients know.
func category(d diag.Diagnostic) string {
	switch {
	case d.Raised != nil:
		return "plugin_exception"
	case strings.Contains(d.Kind, "Parser"), strings.Contains(d.Kind, "InvalidNamespaceAccess"):
		return "parse_error"
	}
	return "runtime_error"
}

func locationOf(l *diag.Location) *errorLocation {
	if l == nil {
		return nil
	}
	position := func(line, column int) errorPosition {
		return errorPosition{Line: max(0, line-1), Character: max(0, column-1)}
	}
	end := position(l.EndLine, l.EndColumn)
	if l.EndLine == 0 {
		// Only the line is known: its range ends where the next one begins.
		end = position(l.Line+1, 1)
		if l.EndColumn > 0 {
			end = position(l.Line, l.EndColumn)
		}
	}
	return &errorLocation{URI: l.File, Range: errorRange{Start: position(l.Line, l.Column), End: end}}
}
