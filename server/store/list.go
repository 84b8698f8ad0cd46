package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// MaxPage is the largest size of a page, and the size of a page that does not ask for one.
const MaxPage = 1000

// List describes one paged list: by which fields it can be sorted and filtered, and how. Each list is declared once,
// in lists.go; the API, the console and the command line derive from it what they accept and document. A client's
// query selects among these fields; what else it sends only ever becomes a parameter of a statement, never SQL text.
type List struct {
	Fields []Field
	Sort   string // the field that sorts the list by default
	Desc   bool   // the direction of the default sort
	// ID is the kind of the id that, beside the value of the sort field, makes a bound unique; NoID where bounds
	// have none.
	ID Kind

	rows    *string // the statement that returns all rows; its parameters come first
	counted *string // returns the same rows with fewer columns, which is quicker to count; nil: rows
	key     column  // makes the order of the rows unique
	planned bool    // its statement is planned anew for its parameters, which may be a few values or very many
	// filtersPlanned says that it is planned anew when it is filtered, for the same reason.
	filtersPlanned bool
	// filled says that no field by which it can be sorted is ever NULL. An index serves the place of a page only then.
	filled bool
}

// Field is one field of a list under the name that clients know it by.
type Field struct {
	Name     string
	Kind     Kind // of its values: in a bound when the list is sorted by it, and in a filter that compares
	Sortable bool
	Filter   Comparison // how a filter on it compares; NoFilter where there is none

	column string // the column, or an expression on columns, of the list's statement
}

// Kind is the kind of the values of a field.
type Kind string

// The kinds of values. A query holds all of them as text.
const (
	NoID    Kind = ""
	Text    Kind = "text"
	Number  Kind = "number"
	Time    Kind = "time" // ISO 8601; see ParseTime
	UUID    Kind = "uuid"
	Boolean Kind = "boolean" // see ParseBool
	Level   Kind = "level"   // the level of a log line, such as INFO
)

// Comparison is how a filter compares a field with the values that a client sends.
type Comparison string

// The comparisons. Of several values, Contains and Equals accept a row that matches any of them.
const (
	NoFilter    Comparison = ""
	Contains    Comparison = "contains"      // the field contains the value, ignoring case
	Equals      Comparison = "equals"        // the field is the value
	EqualsOrNot Comparison = "equals or not" // as Equals; values !x exclude rows whose field is x
	Is          Comparison = "is"            // the field is true, or false; one value
	IsSet       Comparison = "is set"        // the field has a value, or has none; one value, true or false
	InRange     Comparison = "in range"      // lt:, le:, gt: or ge: and a bound; all values must hold
	AtLeast     Comparison = "at least"      // the field is this level or a graver one; one value
)

// column is a column of a list's statement.
type column struct {
	name string
	kind Kind
}

// Field returns the field with a name, in lower case.
func (l *List) Field(name string) (Field, bool) {
	for _, f := range l.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// SortFields returns the names of the fields that the list can be sorted by.
func (l *List) SortFields() (names []string) {
	for _, f := range l.Fields {
		if f.Sortable {
			names = append(names, f.Name)
		}
	}
	return names
}

// Normalize checks a query and returns it with its defaults filled in and all values in one form: numbers in decimal,
// times in UTC and RFC 3339, booleans as true and false, levels in upper case. It fails with fault.Invalid. The
// methods that list do this themselves; a door calls it where it needs the normal form, such as to write links.
func (l *List) Normalize(q intent.ListQuery) (intent.ListQuery, error) {
	if q.Limit == 0 {
		q.Limit = MaxPage
	}
	if q.Limit < 0 || q.Limit > MaxPage {
		return q, invalidList("the limit must be between 1 and %d, not %d", MaxPage, q.Limit)
	}
	if q.Sort == "" {
		q.Sort, q.Desc = l.Sort, l.Desc
	}
	by, ok := l.Field(strings.ToLower(q.Sort))
	if !ok || !by.Sortable {
		return q, invalidList("cannot sort by %q, only by %s", q.Sort, strings.Join(l.SortFields(), ", "))
	}
	q.Sort = by.Name
	if q.After != nil && q.Before != nil {
		return q, invalidList("a page lies after one bound or before one, not both")
	}
	var err error
	if q.After, err = l.normalBound(q.After, by); err != nil {
		return q, err
	}
	if q.Before, err = l.normalBound(q.Before, by); err != nil {
		return q, err
	}
	q.Filters, err = l.normalFilters(q.Filters)
	return q, err
}

func (l *List) normalBound(b *intent.Bound, by Field) (*intent.Bound, error) {
	if b == nil {
		return nil, nil
	}
	out := &intent.Bound{}
	if b.ID != "" {
		if l.ID == NoID {
			return nil, invalidList("a bound of this list has no id")
		}
		id, _, err := l.ID.parse(b.ID)
		if err != nil {
			return nil, invalidList("the id of the bound: %v", err)
		}
		out.ID = id
	}
	if b.Value != nil {
		value, _, err := by.Kind.parse(*b.Value)
		if err != nil {
			return nil, invalidList("the bound: %v", err)
		}
		out.Value = &value
	}
	return out, nil
}

func (l *List) normalFilters(filters map[string][]string) (map[string][]string, error) {
	if len(filters) == 0 {
		return nil, nil
	}
	out := make(map[string][]string, len(filters))
	for _, name := range sortedKeys(filters) {
		f, ok := l.Field(name)
		if !ok || f.Filter == NoFilter {
			return nil, invalidList("this list has no filter %s", name)
		}
		if len(filters[name]) == 0 {
			continue
		}
		if f.Filter.takesOne() && len(filters[name]) != 1 {
			return nil, invalidList("the filter %s takes one value", name)
		}
		for _, given := range filters[name] {
			value, err := f.normalValue(given)
			if err != nil {
				return nil, invalidList("the filter %s: %v", name, err)
			}
			out[name] = append(out[name], value)
		}
	}
	return out, nil
}

func (c Comparison) takesOne() bool { return c == Is || c == IsSet || c == AtLeast }

// normalValue returns the normal form of one value of a filter on the field.
func (f Field) normalValue(given string) (value string, err error) {
	switch f.Filter {
	case Is, IsSet:
		value, _, err = Boolean.parse(given)
	case InRange:
		var operator string
		if operator, given, err = splitRange(given); err == nil {
			value, _, err = f.Kind.parse(given)
			value = operator + ":" + value
		}
	case AtLeast:
		value, _, err = Level.parse(given)
	default:
		value, _, err = Text.parse(given)
	}
	return value, err
}

// rangeOperators are the comparisons of a range filter in SQL.
var rangeOperators = map[string]string{"lt": "<", "le": "<=", "gt": ">", "ge": ">="}

// splitRange splits a value such as ge:7.
func splitRange(s string) (operator, bound string, err error) {
	operator, bound, ok := strings.Cut(s, ":")
	operator = strings.ToLower(operator)
	if _, known := rangeOperators[operator]; !ok || !known {
		return "", "", fmt.Errorf("%q should be lt, le, gt or ge, a colon and a value", s)
	}
	return operator, bound, nil
}

func invalidList(format string, args ...any) error {
	return fault.New("store.list", fault.Invalid, fmt.Sprintf(format, args...))
}

// severities orders the levels of log lines.
var severities = map[string]int{"TRACE": 3, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}

// parse returns the normal form of a value and what the database takes for it.
func (k Kind) parse(s string) (normal string, parameter any, err error) {
	switch k {
	case Number:
		n, err := parseNumber(s)
		return fmt.Sprint(n), n, err
	case Time:
		t, err := ParseTime(s)
		return t.Format(normalTime), t, err
	case UUID:
		id, err := uuid.Parse(s)
		if err != nil {
			return "", nil, fmt.Errorf("%q is not a UUID", s)
		}
		return id.String(), id, nil
	case Boolean:
		b, err := ParseBool(s)
		return fmt.Sprint(b), b, err
	case Level:
		upper := strings.ToUpper(s)
		severity, ok := severities[upper]
		if !ok {
			levels := sortedKeys(severities)
			slices.SortFunc(levels, func(a, b string) int { return severities[a] - severities[b] })
			return "", nil, fmt.Errorf("%q is not a level: %s", s, strings.Join(levels, ", "))
		}
		return upper, severity, nil
	}
	if strings.ContainsRune(s, 0) {
		return "", nil, errors.New("the text contains a zero byte")
	}
	return s, s, nil
}
