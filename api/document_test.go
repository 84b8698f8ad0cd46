package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3gen"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// tidParameter is the name, among the components of the document, of the header that names the environment.
const tidParameter = "environment"

// document describes calls in OpenAPI 3, from their declarations and the types of their methods.
func document(calls []*declaration) (*openapi3.T, error) {
	doc := &openapi3.T{
		OpenAPI: "3.0.3",
		Info: &openapi3.Info{
			Title: "Ordain", Version: unknownVersion,
			Description: "Inmanta's REST API, and what Ordain adds to it. Arguments can stand in the path, in the " +
				"query or in a JSON body; where one stands in several, the path counts before the query, and the " +
				"query before the body. A call rejects arguments that it does not know. Some calls of version 1 " +
				"answer errors without a body.",
		},
		Components: &openapi3.Components{
			Schemas: openapi3.Schemas{},
			Parameters: openapi3.ParametersMap{tidParameter: {Value: openapi3.NewHeaderParameter(tidHeader).
				WithRequired(true).WithSchema(openapi3.NewUUIDSchema()).
				WithDescription("The id of the environment that the call works in.")}},
			Responses: openapi3.ResponseBodies{},
		},
		Paths: openapi3.NewPaths(),
	}
	d := documenter{doc: doc, names: map[string]int{}, generator: openapi3gen.NewGenerator(
		openapi3gen.CreateComponentSchemas(openapi3gen.ExportComponentSchemasOptions{
			ExportComponentSchemas: true, ExportTopLevelSchema: true,
		}),
		openapi3gen.CreateTypeNameGenerator(schemaName),
		openapi3gen.SchemaCustomizer(customizeSchema),
	)}
	failure, err := d.schema(reflect.TypeFor[errorAnswer]())
	if err != nil {
		return nil, err
	}
	doc.Components.Responses["error"] = &openapi3.ResponseRef{Value: openapi3.NewResponse().
		WithDescription("The call failed.").WithJSONSchemaRef(failure)}
	for _, call := range calls {
		operation, err := d.operation(call)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", call.method, call.path, err)
		}
		doc.AddOperation(call.path, call.method, operation)
	}
	return doc, nil
}

// documenter writes the operations of a document.
type documenter struct {
	doc       *openapi3.T
	generator *openapi3gen.Generator
	names     map[string]int // how many operations have a name
}

func (d *documenter) operation(call *declaration) (*openapi3.Operation, error) {
	o := openapi3.NewOperation()
	o.OperationID, o.Summary, o.Tags = d.operationID(call), call.summary, []string{call.group}
	if scoped(call.args) {
		o.Parameters = append(o.Parameters, &openapi3.ParameterRef{Ref: "#/components/parameters/" + tidParameter})
	}
	if err := d.arguments(o, call); err != nil {
		return nil, err
	}
	success, err := d.success(call)
	if err != nil {
		return nil, err
	}
	o.Responses = openapi3.NewResponses(openapi3.WithStatus(call.status, &openapi3.ResponseRef{Value: success}))
	if call.answer == reflect.TypeFor[compiling]() {
		o.Responses.Set("204", &openapi3.ResponseRef{Value: openapi3.NewResponse().WithDescription("It does not.")})
	}
	if call.answer == reflect.TypeFor[graphqlAnswer]() {
		either := openapi3.NewSchema()
		either.AnyOf = openapi3.SchemaRefs{
			openapi3.NewSchemaRef("#/components/schemas/GraphqlAnswer", nil),
			openapi3.NewSchemaRef("#/components/schemas/ErrorAnswer", nil),
		}
		o.Responses.Set("400", &openapi3.ResponseRef{Value: openapi3.NewResponse().
			WithDescription("The query failed, or it is none.").WithJSONSchema(either)})
	}
	if call.method != http.MethodHead {
		o.Responses.Set("default", &openapi3.ResponseRef{Ref: "#/components/responses/error"})
	}
	return o, nil
}

// operationID is the name of the handler. Several calls may have the same one.
func (d *documenter) operationID(call *declaration) string {
	name := call.handler
	if strings.HasPrefix(call.path, "/api/v1/") && !strings.HasSuffix(name, "V1") {
		name += "V1"
	}
	d.names[name]++
	if n := d.names[name]; n > 1 {
		name = fmt.Sprintf("%s_%d", name, n)
	}
	return name
}

// success describes the answer of a call that succeeds.
func (d *documenter) success(call *declaration) (*openapi3.Response, error) {
	response := openapi3.NewResponse().WithDescription("The call succeeded.")
	if call.answer == nil || call.method == http.MethodHead {
		return response, nil
	}
	if call.answer == reflect.TypeFor[fileAnswer]() {
		return response.WithContent(openapi3.NewContentWithSchema(openapi3.NewStringSchema().WithFormat("binary"),
			[]string{"application/octet-stream"})), nil
	}
	schema, err := d.schema(call.answer)
	if err != nil {
		return nil, err
	}
	return response.WithJSONSchemaRef(schema), nil
}

// schema describes a type of answers. Structs become components of the document.
func (d *documenter) schema(t reflect.Type) (*openapi3.SchemaRef, error) {
	if t == reflect.TypeFor[object]() {
		return openapi3.NewSchemaRef("", openapi3.NewObjectSchema().WithoutAdditionalProperties()), nil
	}
	return d.generator.NewSchemaRefForValue(reflect.Zero(t).Interface(), d.doc.Components.Schemas)
}

// schemaName names the component of a type: those of this package by themselves, others with their package.
func schemaName(t reflect.Type) string {
	name := upperFirst(t.Name())
	if t.Name() != "" && t.PkgPath() != reflect.TypeFor[declaration]().PkgPath() {
		name = upperFirst(path.Base(t.PkgPath())) + name
	}
	return name
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// customizeSchema says what reflection alone cannot: which types write themselves as texts, that a struct always has
// all of its fields and no others, and which fields may be null.
func customizeSchema(_ string, t reflect.Type, _ reflect.StructTag, schema *openapi3.Schema) error {
	switch t {
	case reflect.TypeFor[uuid.UUID]():
		schema.Type, schema.Format = &openapi3.Types{openapi3.TypeString}, "uuid"
		return nil
	case reflect.TypeFor[timestamp]():
		schema.Format = "date-time"
		return nil
	case reflect.TypeFor[json.RawMessage]():
		schema.Nullable = true // any JSON
		return nil
	}
	switch {
	case t.Kind() == reflect.Interface:
		schema.Nullable = true
	case t.Kind() == reflect.Struct && schema.Type.Is(openapi3.TypeString): // time.Time
	case t.Kind() == reflect.Struct:
		schema.Type = &openapi3.Types{openapi3.TypeObject}
		schema.AdditionalProperties = openapi3.AdditionalProperties{Has: new(false)}
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "" || name == "-" {
				continue
			}
			if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") &&
				!slices.Contains(schema.Required, name) {
				schema.Required = append(schema.Required, name)
			}
			// A reference cannot be null itself.
			if ref := schema.Properties[name]; ref != nil && ref.Ref != "" && f.Type.Kind() == reflect.Pointer &&
				f.Type.Elem().Kind() == reflect.Struct {
				schema.Properties[name] = openapi3.NewSchemaRef("", &openapi3.Schema{
					Nullable: true, AllOf: openapi3.SchemaRefs{ref},
				})
			}
		}
	}
	return nil
}

// argument is one argument of a call.
type argument struct {
	name     string
	required bool
	schema   *openapi3.Schema
}

// scoped reports whether a call works in one environment.
func scoped(args reflect.Type) bool {
	_, is := reflect.New(args).Interface().(interface{ environment() *uuid.UUID })
	return is
}

// argumentsOf lists the arguments that a struct declares by its arg tags.
func argumentsOf(t reflect.Type) (all []argument) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == reflect.TypeFor[jsonBody]() || f.Type == reflect.TypeFor[fileBody]() {
			continue
		}
		if inlined(f) {
			all = append(all, argumentsOf(f.Type)...)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("arg"), ",")
		if name == "" || f.Type == reflect.TypeFor[filters]() {
			continue
		}
		all = append(all, argument{name, option == "required", argumentSchema(f.Type)})
	}
	return all
}

func argumentSchema(t reflect.Type) *openapi3.Schema {
	switch t {
	case reflect.TypeFor[uuid.UUID]():
		return openapi3.NewUUIDSchema()
	case reflect.TypeFor[base64Content]():
		return openapi3.NewStringSchema()
	case reflect.TypeFor[rawJSON]():
		return openapi3.NewSchema()
	case reflect.TypeFor[intent.ResourceID]():
		return openapi3.NewStringSchema()
	}
	if c, ok := reflect.New(t).Interface().(choice); ok {
		schema := openapi3.NewStringSchema()
		for _, text := range c.choices() {
			schema.Enum = append(schema.Enum, text)
		}
		return schema
	}
	switch t.Kind() {
	case reflect.Pointer:
		return argumentSchema(t.Elem())
	case reflect.String:
		return openapi3.NewStringSchema()
	case reflect.Bool:
		return openapi3.NewBoolSchema()
	case reflect.Int, reflect.Int64:
		return openapi3.NewIntegerSchema()
	case reflect.Slice:
		return openapi3.NewArraySchema().WithItems(argumentSchema(t.Elem()))
	case reflect.Map:
		return openapi3.NewObjectSchema().WithAnyAdditionalProperties()
	}
	return &openapi3.Schema{Nullable: true} // any JSON
}

// arguments describes the arguments of a call: those in its path, and the others in the query of a call that reads,
// or in the body of one that writes.
func (d *documenter) arguments(o *openapi3.Operation, call *declaration) error {
	args := reflect.New(call.args).Elem()
	_, json := find[jsonBody](args)
	_, file := find[fileBody](args)
	whole := json || file
	inBody := openapi3.NewObjectSchema().WithoutAdditionalProperties()
	for _, a := range argumentsOf(call.args) {
		switch {
		case strings.Contains(call.path, "{"+a.name+"}"):
			o.AddParameter(openapi3.NewPathParameter(a.name).WithSchema(a.schema))
		case !whole && slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, call.method):
			inBody.WithProperty(a.name, a.schema)
			if a.required {
				inBody.Required = append(inBody.Required, a.name)
			} else {
				a.schema.Nullable = true // null stands for what is left out
			}
		default:
			p := openapi3.NewQueryParameter(a.name).WithRequired(a.required).WithSchema(a.schema)
			if a.name == "sort" && call.list != nil {
				a.schema.Enum = sortOrders(call.list)
			}
			o.AddParameter(p)
		}
	}
	if call.list != nil {
		for _, f := range call.list.Fields {
			if f.Filter != store.NoFilter {
				o.AddParameter(openapi3.NewQueryParameter("filter." + f.Name).WithDescription(filterText(f)).
					WithSchema(openapi3.NewArraySchema().WithItems(openapi3.NewStringSchema())))
			}
		}
	}
	switch {
	case json:
		o.RequestBody = &openapi3.RequestBodyRef{Value: openapi3.NewRequestBody().WithRequired(true).
			WithJSONSchema(openapi3.NewObjectSchema().WithAnyAdditionalProperties())}
	case file:
		o.RequestBody = &openapi3.RequestBodyRef{Value: openapi3.NewRequestBody().WithRequired(true).
			WithSchema(openapi3.NewStringSchema().WithFormat("binary"), []string{"application/octet-stream"})}
	case len(inBody.Properties) > 0:
		o.RequestBody = &openapi3.RequestBodyRef{Value: openapi3.NewRequestBody().
			WithRequired(len(inBody.Required) > 0).WithJSONSchema(inBody)}
	}
	return nil
}

func sortOrders(l *store.List) (orders []any) {
	for _, name := range l.SortFields() {
		orders = append(orders, name+".asc", name+".desc")
	}
	return orders
}

func filterText(f store.Field) string {
	kind := string(f.Kind)
	switch f.Filter {
	case store.Contains:
		return "Keeps what contains the text, ignoring case."
	case store.EqualsOrNot:
		return "Keeps what is equal to the " + kind + "; with ! before it, what is not."
	case store.Is:
		return "true or false."
	case store.IsSet:
		return "true keeps what has a value, false what has none."
	case store.InRange:
		return "lt:, le:, gt: or ge:, followed by a " + kind + ". All of several must hold."
	case store.AtLeast:
		return "Keeps this " + kind + " and graver ones."
	}
	return "Keeps what is equal to the " + kind + "."
}
