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

	"github.com/gin-gonic/gin"
)

// docsPath is where the API describes itself: as a page for people, and with format=openapi as an OpenAPI document.
const docsPath = "/api/v2/docs"

// openapi.json is generated from the declarations of the calls and the types of their methods, by
// TestTheDocumentIsUpToDate (see document_test.go): the library that does it would slow the start of every command.
//
//go:embed openapi.json
var openapiText string

// unknownVersion stands in openapi.json where the version of the program belongs.
const unknownVersion = "VERSION"

//go:embed docs.html
var docsText string

var docsPage = template.Must(template.New("docs").Parse(docsText))

// docs serves the description of the API.
type docs struct {
	document []byte
	page     func() []byte // is written when somebody asks for it first
}

func newDocs(version string) docs {
	quoted, _ := json.Marshal(version) // a string never fails
	text := strings.Replace(openapiText, `"`+unknownVersion+`"`, string(quoted), 1)
	return docs{document: []byte(text), page: sync.OnceValue(func() []byte {
		var doc openapiDocument
		var b bytes.Buffer
		err := json.Unmarshal([]byte(text), &doc)
		if err == nil {
			err = docsPage.Execute(&b, docsOf(doc))
		}
		if err != nil {
			panic("api: openapi.json cannot be shown: " + err.Error())
		}
		return b.Bytes()
	})}
}

func (d docs) serve(g *gin.Context) {
	switch g.Query("format") {
	case "", "swagger":
		g.Data(http.StatusOK, "text/html; charset=UTF-8", d.page())
	case "openapi":
		g.Data(http.StatusOK, "application/json", d.document)
	default:
		htmlError(g.Writer, http.StatusBadRequest)
	}
}

// openapiDocument is what the page shows of an OpenAPI document.
type openapiDocument struct {
	Info       struct{ Title, Version, Description string }
	Paths      map[string]map[string]openapiOperation
	Components struct{ Schemas map[string]openapiSchema }
}

type openapiOperation struct {
	OperationID, Summary string
	Tags                 []string
	Parameters           []openapiParameter
	RequestBody          openapiBody
	Responses            map[string]openapiBody
}

type openapiParameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                openapiSchema
}

// openapiBody is the body of a request or an answer.
type openapiBody struct {
	Ref     string `json:"$ref"`
	Content map[string]struct{ Schema openapiSchema }
}

type openapiSchema struct {
	Ref                  string `json:"$ref"`
	Type, Format         string
	Nullable             bool
	Enum                 []string
	Items                *openapiSchema
	Properties           map[string]openapiSchema
	Required             []string
	AllOf                []openapiSchema
	AdditionalProperties json.RawMessage // true, false or a schema
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

func docsOf(doc openapiDocument) docsView {
	v := docsView{Title: doc.Info.Title, Version: doc.Info.Version, Description: doc.Info.Description}
	groups := map[string][]docsCall{}
	for path, operations := range doc.Paths {
		for method, o := range operations {
			groups[o.Tags[0]] = append(groups[o.Tags[0]], callView(strings.ToUpper(method), path, o))
		}
	}
	version := func(c docsCall) string { return c.Path[:len("/api/v1")] }
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		slices.SortFunc(groups[name], func(a, b docsCall) int {
			return cmp.Or(
				cmp.Compare(version(b), version(a)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		})
		v.Groups = append(v.Groups, docsGroup{name, groups[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		v.Schemas = append(v.Schemas, docsSchema{name, fieldViews(doc.Components.Schemas[name], "")})
	}
	return v
}

const jsonType = "application/json"

func callView(method, path string, o openapiOperation) docsCall {
	c := docsCall{ID: o.OperationID, Method: method, Path: path, Summary: o.Summary}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			c.Scoped = true
			continue
		}
		c.Arguments = append(c.Arguments, docsField{
			Name: p.Name, Where: p.In, Text: p.Description, Required: p.Required, Type: typeView(p.Schema),
		})
	}
	c.Arguments = append(c.Arguments, fieldViews(o.RequestBody.Content[jsonType].Schema, "body")...)
	var statuses []string
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if r := o.Responses[status]; r.Ref == "" {
			statuses = append(statuses, status)
			if media, ok := r.Content[jsonType]; ok {
				c.Answer = typeView(media.Schema)
			}
		}
	}
	c.Status = strings.Join(statuses, " or ")
	return c
}

func fieldViews(s openapiSchema, where string) (fields []docsField) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		fields = append(fields, docsField{
			Name: name, Where: where, Required: slices.Contains(s.Required, name), Type: typeView(s.Properties[name]),
		})
	}
	return fields
}

// typeView writes a type, such as "list of Compile" or "string or null".
func typeView(s openapiSchema) (out []docsType) {
	text := func(t string) { out = append(out, docsType{Text: t}) }
	var values openapiSchema // of an object whose keys are not known
	_ = json.Unmarshal(s.AdditionalProperties, &values)
	switch {
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return []docsType{{Text: name, Schema: name}}
	case len(s.AllOf) == 1:
		out = typeView(s.AllOf[0])
	case s.Items != nil:
		text("list of ")
		out = append(out, typeView(*s.Items)...)
	case len(s.Properties) > 0:
		text("{")
		for i, f := range fieldViews(s, "") {
			if i > 0 {
				text(", ")
			}
			text(f.Name + ": ")
			out = append(out, f.Type...)
		}
		text("}")
	case values.Type != "" || values.Ref != "":
		text("object of ")
		out = append(out, typeView(values)...)
	case s.Type == "":
		text("any JSON")
		return out
	default:
		text(cmp.Or(s.Format, s.Type))
	}
	if len(s.Enum) > 0 {
		text(": " + strings.Join(s.Enum, ", "))
	}
	if s.Nullable {
		text(" or null")
	}
	return out
}
