package api

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
)

// docsPath is where the API describes itself: as a page for people, and with format=openapi as an OpenAPI document.
const docsPath = "/api/v2/docs"

//go:embed docs.html
var docsText string

var docsPage = template.Must(template.New("docs").Parse(docsText))

// docs serves the description of the API. It is written when somebody asks for it first.
type docs struct {
	json func() ([]byte, error)
	page func() ([]byte, error)
}

func newDocs(version string, calls []*declaration) docs {
	doc := sync.OnceValues(func() (*openapi3.T, error) { return document(version, calls) })
	return docs{
		json: sync.OnceValues(func() ([]byte, error) {
			d, err := doc()
			if err != nil {
				return nil, err
			}
			return json.Marshal(d)
		}),
		page: sync.OnceValues(func() ([]byte, error) {
			d, err := doc()
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			err = docsPage.Execute(&b, docsOf(d))
			return b.Bytes(), err
		}),
	}
}

func (d docs) serve(g *gin.Context) {
	write, kind := d.page, "text/html; charset=UTF-8"
	switch g.Query("format") {
	case "", "swagger":
	case "openapi":
		write, kind = d.json, "application/json"
	default:
		htmlError(g.Writer, http.StatusBadRequest)
		return
	}
	text, err := write()
	if err != nil {
		panic("api: the calls cannot be described: " + err.Error())
	}
	g.Data(http.StatusOK, kind, text)
}

// docsView is what the page shows.
type docsView struct {
	Title, Version, Description string
	Groups                      []docsGroup
	Schemas                     []docsSchema
}

type docsGroup struct {
	Name  string
	Calls []docsCall
}

type docsCall struct {
	ID, Method, Path, Summary string
	Scoped                    bool // it works in the environment that a header names
	Arguments                 []docsField
	Status                    string
	Answer                    []docsType
}

type docsField struct {
	Name, Where, Text string
	Required          bool
	Type              []docsType
}

// docsType is a piece of the text of a type; Schema is the component that it names, if it names one.
type docsType struct{ Text, Schema string }

type docsSchema struct {
	Name   string
	Fields []docsField
}

func docsOf(doc *openapi3.T) docsView {
	v := docsView{Title: doc.Info.Title, Version: doc.Info.Version, Description: doc.Info.Description}
	groups := map[string][]docsCall{}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			groups[o.Tags[0]] = append(groups[o.Tags[0]], callView(method, path, o))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		slices.SortFunc(groups[name], func(a, b docsCall) int {
			return cmp.Or(cmp.Compare(b.Path[:len("/api/v1")], a.Path[:len("/api/v1")]),
				cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		})
		v.Groups = append(v.Groups, docsGroup{name, groups[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		v.Schemas = append(v.Schemas, docsSchema{name, fieldViews(doc.Components.Schemas[name].Value, "")})
	}
	return v
}

func callView(method, path string, o *openapi3.Operation) docsCall {
	c := docsCall{ID: o.OperationID, Method: method, Path: path, Summary: o.Summary}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			c.Scoped = true
			continue
		}
		c.Arguments = append(c.Arguments, docsField{
			Name: p.Value.Name, Where: p.Value.In, Text: p.Value.Description, Required: p.Value.Required,
			Type: typeView(p.Value.Schema),
		})
	}
	if o.RequestBody != nil {
		body := o.RequestBody.Value.Content.Get("application/json").Schema.Value
		c.Arguments = append(c.Arguments, fieldViews(body, "body")...)
	}
	for status, r := range o.Responses.Map() {
		if r.Ref != "" {
			continue
		}
		c.Status = strings.Trim(c.Status+" or "+status, " or")
		if media := r.Value.Content.Get("application/json"); media != nil {
			c.Answer = typeView(media.Schema)
		}
	}
	return c
}

func fieldViews(s *openapi3.Schema, where string) (fields []docsField) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		fields = append(fields, docsField{
			Name: name, Where: where, Required: slices.Contains(s.Required, name), Type: typeView(s.Properties[name]),
		})
	}
	return fields
}

// typeView writes a type, such as "list of Compile" or "string or null".
func typeView(ref *openapi3.SchemaRef) []docsType {
	if name, ok := strings.CutPrefix(ref.Ref, "#/components/schemas/"); ok {
		return []docsType{{Text: name, Schema: name}}
	}
	s := ref.Value
	var out []docsType
	text := func(t string) { out = append(out, docsType{Text: t}) }
	switch {
	case len(s.AllOf) == 1:
		out = typeView(s.AllOf[0])
	case s.Type.Is(openapi3.TypeArray):
		text("list of ")
		out = append(out, typeView(s.Items)...)
	case s.Type.Is(openapi3.TypeObject) && len(s.Properties) > 0:
		text("{")
		for i, f := range fieldViews(s, "") {
			if i > 0 {
				text(", ")
			}
			text(f.Name + ": ")
			out = append(out, f.Type...)
		}
		text("}")
	case s.Type.Is(openapi3.TypeObject) && s.AdditionalProperties.Schema != nil:
		text("object of ")
		out = append(out, typeView(s.AdditionalProperties.Schema)...)
	case s.Type == nil:
		text("any JSON")
		return out
	case s.Format != "":
		text(s.Format)
	default:
		text(strings.Join(s.Type.Slice(), " or "))
	}
	if len(s.Enum) > 0 {
		text(": ")
		for i, v := range s.Enum {
			if i > 0 {
				text(", ")
			}
			text(v.(string))
		}
	}
	if s.Nullable {
		text(" or null")
	}
	return out
}
