package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/edge"
	"ordain.dev/ordain/server/store"
)

// tidHeader names the environment that a call works in.
const tidHeader = "X-Inmanta-tid"

// inEnvironment is embedded in the arguments of calls that work in one environment, which a header names.
type inEnvironment struct {
	Env uuid.UUID
}

func (e *inEnvironment) environment() *uuid.UUID { return &e.Env }

// argumentError is answered with 400 and says which arguments are wrong, in the form that clients know.
type argumentError struct {
	fields []fieldError
}

type fieldError struct {
	Type  string   `json:"type"`
	Loc   []string `json:"loc"`
	Msg   string   `json:"msg"`
	Input any      `json:"input"`
}

func (e *argumentError) Error() string {
	parts := make([]string, len(e.fields))
	for i, f := range e.fields {
		parts[i] = strings.Join(f.Loc, ".") + ": " + f.Msg
	}
	return "Failed to validate argument\n" + strings.Join(parts, "\n")
}

func invalid(format string, args ...any) error {
	return fault.New("api", fault.Invalid, fmt.Sprintf(format, args...))
}

// gather merges the arguments of the path, the query and the body into one set. The path counts before the query, and
// the query before the body.
func gather(
	r *http.Request, inPath map[string]string, maxBody int64, share *edge.Share, into any,
) (map[string]any, error) {
	args := map[string]any{}
	whole, err := takeBody(r, maxBody, share, into)
	if err == nil && !whole {
		args, err = bodyArguments(r, maxBody, valuesOf(into), share)
	}
	if err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query of the address cannot be read: %v", err)
	}
	mergeQuery(args, query)
	for name, escaped := range inPath {
		value, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, invalid("the path cannot be read: %v", err)
		}
		args[name] = value
	}
	return args, nil
}

// mergeQuery adds the arguments of a query: a key that is repeated becomes a list, and filter.x=… becomes a part of the
// argument filter.
func mergeQuery(args map[string]any, query url.Values) {
	for key, values := range query {
		if name, ok := strings.CutPrefix(key, "filter."); ok {
			filter, isMap := decoded(args["filter"]).(map[string]any)
			if !isMap {
				filter = map[string]any{}
			}
			args["filter"] = filter
			list := make([]any, len(values))
			for i, v := range values {
				list[i] = v
			}
			filter[name] = list
			continue
		}
		if len(values) == 1 {
			args[key] = values[0]
			continue
		}
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		args[key] = list
	}
}

// decode fills a struct with the arguments. The tag of a field is `arg:"name"` or `arg:"name,required"`; a field whose
// argument is not given keeps its value.
func decode(args map[string]any, into any) error {
	known := map[string]bool{}
	var wrong []fieldError
	fill(reflect.ValueOf(into).Elem(), args, known, &wrong)
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !known[name] && name != "tid" {
			unknown = append(unknown, "'"+name+"'")
		}
	}
	if len(unknown) > 0 {
		return invalid("request contains fields {%s} that are not declared by this call", strings.Join(unknown, ", "))
	}
	if len(wrong) > 0 {
		return &argumentError{fields: wrong}
	}
	return nil
}

func fill(v reflect.Value, args map[string]any, known map[string]bool, wrong *[]fieldError) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if inlined(field) {
			fill(v.Field(i), args, known, wrong)
			continue
		}
		name, option, _ := strings.Cut(field.Tag.Get("arg"), ",")
		if name == "" {
			continue
		}
		known[name] = true
		value, given := args[name]
		if !given {
			if option == "required" {
				*wrong = append(
					*wrong,
					fieldError{Type: "missing", Loc: []string{name}, Msg: "Field '" + name + "' is required."},
				)
			}
			continue
		}
		if value == nil && option != "required" {
			continue // null leaves the default
		}
		if kind, err := set(v.Field(i), value, textLimit(field)); err != nil {
			*wrong = append(*wrong, fieldError{Type: kind, Loc: []string{name}, Msg: err.Error(), Input: shown(value)})
		}
	}
}

// inlined reports whether a field is a struct whose fields are arguments: an embedded one, or one with the tag
// `arg:",inline"`, since a type parameter cannot be embedded.
func inlined(f reflect.StructField) bool { return f.Anonymous || f.Tag.Get("arg") == ",inline" }

// textLimit returns how many bytes a text may have in a field.
func textLimit(field reflect.StructField) int {
	if n, err := strconv.Atoi(field.Tag.Get("max")); err == nil {
		return n
	}
	return maxText
}

// shown returns a wrong value as the answer repeats it: a long one is not repeated.
func shown(value any) any {
	switch x := value.(type) {
	case json.RawMessage:
		if len(x) > maxScalar {
			return nil
		}
		return decoded(x)
	case string:
		if len(x) > maxScalar {
			return nil
		}
	}
	return value
}

// checkArguments panics for a struct with a field of a type that set does not know.
func checkArguments(v reflect.Value) {
	for i := range v.NumField() {
		switch field := v.Type().Field(i); {
		case field.Type == reflect.TypeFor[jsonBody](), field.Type == reflect.TypeFor[fileBody]():
		case inlined(field):
			checkArguments(v.Field(i))
		case field.Tag.Get("arg") != "":
			_, _ = set(v.Field(i), "", maxText)
		}
	}
}

func integer(value any, least, most int64) (n int64, kind string, err error) {
	text := ""
	switch x := value.(type) {
	case string:
		text = strings.TrimSpace(x)
	case json.Number:
		text = x.String()
	default:
		return 0, "int_type", errors.New("Input should be a valid integer")
	}
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil || n > most || n < least {
		return 0, "int_parsing", errors.New("Input should be a valid integer")
	}
	return n, "", nil
}

// set converts a value, which came in JSON or as a text, into a field. Texts may have at most limit bytes.
func set(field reflect.Value, value any, limit int) (kind string, err error) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		return set(field.Elem(), value, limit)
	}
	if content, ok := field.Addr().Interface().(*base64Content); ok {
		return "value_error", content.set(value)
	}
	if raw, ok := field.Addr().Interface().(*rawJSON); ok {
		return "value_error", raw.set(value)
	}
	value = decoded(value)
	if c, ok := field.Addr().Interface().(choice); ok {
		return "enum", choose(c, value)
	}
	switch target := field.Addr().Interface().(type) {
	case *uuid.UUID:
		text, ok := value.(string)
		if !ok {
			return "uuid_type", errors.New("Input should be a UUID")
		}
		id, err := uuid.Parse(text)
		if err != nil {
			return "uuid_parsing", fmt.Errorf("Input should be a valid UUID: %w", err)
		}
		*target = id
	case *any:
		if *target, err = plain(value); err != nil {
			return "value_error", err
		}
	case *string:
		switch x := value.(type) {
		case string:
			*target = x
		case json.Number:
			*target = x.String()
		default:
			return "string_type", errors.New("Input should be a valid string")
		}
		if err := checkText(*target, limit); err != nil {
			return "value_error", err
		}
	case *bool:
		switch x := value.(type) {
		case bool:
			*target = x
		case string:
			b, err := store.ParseBool(x)
			if err != nil {
				return "bool_parsing", err
			}
			*target = b
		default:
			return "bool_type", errors.New("Input should be a valid boolean")
		}
	case *int:
		n, kind, err := integer(value, math.MinInt32, math.MaxInt32)
		if err != nil {
			return kind, err
		}
		*target = int(n)
	case *int64:
		n, kind, err := integer(value, math.MinInt64, math.MaxInt64)
		if err != nil {
			return kind, err
		}
		*target = n
	case *[]string:
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		out := make([]string, len(list))
		for i, item := range list {
			text, ok := item.(string)
			if !ok {
				return "string_type", errors.New("Input should be a list of strings")
			}
			if err := checkText(text, limit); err != nil {
				return "value_error", err
			}
			out[i] = text
		}
		*target = out
	case *[]int:
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		out := make([]int, len(list))
		for i, item := range list {
			n, kind, err := integer(item, math.MinInt32, math.MaxInt32)
			if err != nil {
				return kind, err
			}
			out[i] = int(n)
		}
		*target = out
	case *map[string]any:
		object, ok := value.(map[string]any)
		if !ok {
			return "dict_type", errors.New("Input should be a valid dictionary")
		}
		if _, err := plain(object); err != nil {
			return "value_error", err
		}
		*target = object
	case *map[string]string:
		object, ok := value.(map[string]any)
		out := map[string]string{}
		for name, item := range object {
			if out[name], ok = item.(string); !ok {
				break
			}
		}
		if !ok {
			return "dict_type", errors.New("Input should be a dictionary of strings")
		}
		if _, err := plain(object); err != nil {
			return "value_error", err
		}
		*target = out
	case *[]map[string]any:
		list, ok := value.([]any)
		if !ok {
			return "list_type", errors.New("Input should be a valid list")
		}
		for _, item := range list {
			object, ok := item.(map[string]any)
			if !ok {
				return "dict_type", errors.New("Input should be a list of dictionaries")
			}
			if _, err := plain(object); err != nil {
				return "value_error", err
			}
			*target = append(*target, object)
		}
	case *filters:
		return "value_error", target.set(value)
	case *intent.Change:
		text, _ := value.(string)
		known := []intent.Change{intent.NoChange, intent.Created, intent.Purged, intent.Updated}
		if *target = intent.Change(text); text != "" && !slices.Contains(known, *target) {
			return "enum", errors.New("Input should be 'nochange', 'created', 'purged' or 'updated'")
		}
	case *intent.ResourceID:
		text, _ := value.(string)
		if err := checkText(text, limit); err != nil {
			return "value_error", err
		}
		id, err := intent.ParseResourceID(text)
		if err != nil {
			return "value_error", err
		}
		*target = id
	case *versionedID:
		text, _ := value.(string)
		if err := checkText(text, limit); err != nil {
			return "value_error", err
		}
		id, version, err := intent.ParseResourceVersionID(text)
		if err != nil {
			return "value_error", err
		}
		target.ID, target.Version = id, version
	default:
		panic("api: no conversion for " + field.Type().String())
	}
	return "", nil
}

// versionedID is a resource id with a version: …,v=3.
type versionedID struct {
	ID      intent.ResourceID
	Version int
}
