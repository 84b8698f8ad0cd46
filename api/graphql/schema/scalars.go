package schema

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// MarshalDateTime writes a time as clients of the reference know it: with microseconds, unless there are none.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	t = t.UTC()
	layout := "2006-01-02T15:04:05.000000-07:00"
	if t.Nanosecond()/int(time.Microsecond) == 0 {
		layout = "2006-01-02T15:04:05-07:00"
	}
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(t.Format(layout))) })
}

// UnmarshalDateTime is here because generated code wants it: no argument is a time.
func UnmarshalDateTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, fmt.Errorf("%T is not a time", v)
	}
	return time.Parse(time.RFC3339Nano, s)
}
