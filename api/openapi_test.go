package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/servertest"
)

// published returns a router over the document that the API publishes of itself, read as a client reads it.
var published = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromData(newDocs(servertest.Version).document)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// validate checks an answer against what the document says of it.
func (c *client) validate(r *http.Request, w *httptest.ResponseRecorder) {
	c.t.Helper()
	router, err := published()
	if err != nil {
		c.t.Fatal("the published document: ", err)
	}
	route, path, err := router.FindRoute(r)
	if err != nil {
		if w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed && r.Method != http.MethodOptions &&
			r.URL.Path != docsPath {
			c.t.Errorf("%s %s answers %d and is not in the document: %v", r.Method, r.URL, w.Code, err)
		}
		return
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || w.Body.Len() == 0 && w.Code >= 400 {
		return // a path that lacks a segment, or an error of old calls
	}
	answers := route.Operation.Responses.Status(w.Code)
	if answers != nil && (len(answers.Value.Content) > 0) != (w.Body.Len() > 0) {
		c.t.Errorf("%s %s: the document is wrong about whether there is a body", r.Method, r.URL)
		return
	}
	if err := openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route},
		Status:                 w.Code, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}); err != nil {
		c.t.Errorf("%s %s is not what the document says: %v", r.Method, r.URL, err)
	}
}

// openapi.json says what the declarations and types say now. Write it anew with ORDAIN_UPDATE=1.
func TestTheDocumentIsUpToDate(t *testing.T) {
	doc, err := document((&server{}).calls(newRouter()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	spread(&b, text, 3)
	b.WriteByte('\n')
	if os.Getenv("ORDAIN_UPDATE") == "1" {
		if err := os.WriteFile("openapi.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != openapiText {
		t.Error("openapi.json is out of date: run this test with ORDAIN_UPDATE=1, then read the difference")
	}
}

// spread writes JSON with a line for each operation and each schema, so that differences can be read.
func spread(b *bytes.Buffer, text json.RawMessage, depth int) {
	var fields map[string]json.RawMessage
	if depth == 0 || json.Unmarshal(text, &fields) != nil {
		b.Write(text)
		return
	}
	separator := "{\n"
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(b, "%s%q: ", separator, name)
		spread(b, fields[name], depth-1)
		separator = ",\n"
	}
	b.WriteString("}")
}

// The page and the document have every call, under a name of its own.
func TestTheAPIDescribesItself(t *testing.T) {
	c := newClient(t, servertest.New(t, servertest.Present))
	doc, err := openapi3.NewLoader().LoadFromData(c.send("GET", docsPath+"?format=openapi", "").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	w := c.send("GET", docsPath, "")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	page, names := w.Body.String(), map[string]bool{}
	for _, call := range (&server{}).calls(newRouter()) {
		item := doc.Paths.Value(call.path)
		if item == nil || item.GetOperation(call.method) == nil {
			t.Errorf("%s %s is not in the document", call.method, call.path)
			continue
		}
		o := item.GetOperation(call.method)
		if names[o.OperationID] || o.Summary == "" {
			t.Errorf("%s %s is called %s and says %q", call.method, call.path, o.OperationID, o.Summary)
		}
		names[o.OperationID] = true
		line := "<code>" + call.method + " " + call.path + "</code> " + template.HTMLEscapeString(call.summary)
		if !strings.Contains(page, line) {
			t.Errorf("%s %s is not on the page", call.method, call.path)
		}
	}
	list := doc.Paths.Value("/api/v2/compilereport").Get
	for _, want := range []string{"limit", "sort", "filter.success", "filter.requested"} {
		if list.Parameters.GetByInAndName("query", want) == nil {
			t.Errorf("the list of compiles has no argument %s", want)
		}
	}
	if w := c.send("GET", docsPath+"?format=pdf", ""); w.Code != 400 {
		t.Errorf("an unknown format is answered %d", w.Code)
	}
}

// The document says which fields there are, of which types, and which of them may be null: an answer that strays from
// it fails.
func TestTheDocumentIsStrict(t *testing.T) {
	router, err := published()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/api/v2/notification/"+uuid.NewString(), nil)
	route, _, err := router.FindRoute(r)
	if err != nil {
		t.Fatal(err)
	}
	schema := route.Operation.Responses.Status(200).Value.Content.Get("application/json").Schema.Value
	good := func() map[string]any {
		return map[string]any{
			"id": uuid.NewString(), "environment": uuid.NewString(), "created": "2026-11-21T16:00:00.123456+00:00",
			"last": "2026-11-21T16:00:00.123456+00:00", "times": 1.0, "title": "", "message": "", "severity": "info",
			"uri": nil, "compile_id": nil, "read": false, "cleared": false,
		}
	}
	if err := schema.VisitJSON(map[string]any{"data": good()}); err != nil {
		t.Errorf("a good answer: %v", err)
	}
	for name, spoil := range map[string]func(map[string]any){
		"a field is missing":     func(m map[string]any) { delete(m, "uri") },
		"a field too many":       func(m map[string]any) { m["colour"] = "red" },
		"another type":           func(m map[string]any) { m["times"] = "once" },
		"null in a wrong place":  func(m map[string]any) { m["title"] = nil },
		"a time in another form": func(m map[string]any) { m["created"] = "yesterday" },
	} {
		m := good()
		spoil(m)
		if err := schema.VisitJSON(map[string]any{"data": m}); err == nil {
			t.Errorf("%s, and nothing is noticed", name)
		}
	}
}

// Every call that only reads answers what the document says.
func TestEveryReadIsAsDocumented(t *testing.T) {
	c, r := rich(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hash, err := r.Store.PutFile(t.Context(), []byte("one\n"))
	must(err)
	_, err = r.Control.Override(control.As(t.Context(), "ida", "the router"), r.Production.ID, intent.Override{
		By: "ida", Reason: "the router", Until: r.Now().Add(time.Hour),
	})
	must(err)
	must(r.Control.SetSetting(t.Context(), r.Production.ID, "maintenance_windows", map[string]any{
		"night": map[string]any{"kind": "window", "cron": "0 2 * * *", "duration": 7200},
	}))
	facts, err := r.Store.Parameters(t.Context(), r.Production.ID, true, intent.ListQuery{})
	must(err)
	const text = `{"name": "small", "providermap": {"openstack": {"flavor": "m1.small"}}}`
	for _, project := range []uuid.UUID{uuid.Nil, r.Project.ID} {
		_, err := r.Catalogue.Create(t.Context(), project, catalogue.HardwareTypes, []byte(text))
		must(err)
	}
	deploying := c.get("/api/v2/resource?filter.status=deploying&limit=1").text("data", 0, "resource_version_id")
	values := map[string]string{ // of what a path has in braces, by the path's first part and the name, or by the name
		"rid": r.FailedFile.String(), "rvid": deploying, "version": "9", "number": "7", "from": "6", "to": "7",
		"report_id": r.DryRun.String(), "environment/id": r.Production.ID.String(), "project/id": r.Project.ID.String(),
		"environment_settings/id": "auto_deploy", "compilereport/id": r.Failed.String(),
		"compiledata/id": r.Failed.String(), "version/id": "8", "deliveries/id": r.Delivery.String(),
		"cluster/kind": "hardwaretypes", "cluster/name": "small", "cluster/version": "1",
		"cluster/id": r.Project.ID.String(),
		"process":    strconv.FormatInt(r.Process, 10), "notification_id": r.Notices[0].ID.String(),
		"parameter/id": "region", "file/id": hash, "dryrun/id": r.DryRun.String(),
		"discovered_resource_id": r.HealthyDir.String(), "resource/id": facts.Items[0].ID.String(),
	}
	for _, call := range (&server{}).calls(newRouter()) {
		if call.method != http.MethodGet ||
			strings.HasPrefix(call.path, "/api/v2/cluster/clusters/") || // TestAClusterFromATemplate reads these three
			strings.HasPrefix(call.path, "/api/v2/cluster/") && strings.Contains(call.path, "/plugins/{type}") ||
			strings.HasSuffix(call.path, "/{kind}/{name}/form") ||
			strings.HasSuffix(call.path, "/{kind}/{name}/resolved") ||
			slices.Contains([]string{
				"currentUser", "listAssignments", "requestCompileByGet",
				"getSchedulerReport", "getScheduler", // these need a server that runs an environment
			}, call.handler) {
			continue
		}
		segments := strings.Split(call.path, "/")
		for i, segment := range segments {
			if name, is := strings.CutPrefix(segment, "{"); is {
				name = strings.TrimSuffix(name, "}")
				value, known := values[segments[3]+"/"+name]
				if !known {
					value, known = values[name]
				}
				if !known {
					t.Errorf("%s: no value for %s", call.path, name)
				}
				segments[i] = url.PathEscape(value)
			}
		}
		path := strings.Join(segments, "/")
		switch call.handler {
		case "getResourceV1":
			path = "/api/v1/resource/" + url.PathEscape(r.FailedFile.AtVersion(7)) + "?logs=true"
		case "isEnabled":
			path += "?agent=web01"
		case "hasFeature":
			path += "?slice_name=core.resource&feature_name=resource_discovery"
		case "getMetrics":
			path += "?metrics=orchestrator.compile_time&start_interval=2026-11-20T00:00:00&" +
				"end_interval=2026-11-21T00:00:00&nb_datapoints=10"
		case "compareSettings":
			path += "?from=" + r.Staging.ID.String()
		case "explain":
			path += "?verb=environment.halt"
		case "explainResource", "getVersionResource", "getDryRun":
			path = strings.Replace(path, "/9/", "/7/", 1)
		case "listResourceFacts", "getResourceFact":
			path = strings.Replace(
				path, url.PathEscape(r.FailedFile.String()), url.PathEscape(r.HealthyDir.String()), 1)
		}
		c.get(path)
	}
}
