package graphql

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/store"
)

const (
	cursorPrefix = "arrayconnection:"
	maxCursor    = 8 << 10
	// pageSize is the size of a page that does not say how large it should be.
	pageSize = 50
)

// encodeCursor writes a place in a list as text. It means nothing to clients.
func encodeCursor(place []string) string {
	text, err := json.Marshal(place)
	if err != nil {
		panic("graphql: a place is a list of texts: " + err.Error())
	}
	return base64.StdEncoding.EncodeToString(append([]byte(cursorPrefix), text...))
}

func decodeCursor(cursor string) (place []string, err error) {
	wrong := invalid("%.40q is not a cursor of this list", cursor)
	if len(cursor) > maxCursor {
		return nil, wrong
	}
	text, err := base64.StdEncoding.DecodeString(cursor)
	if err != nil {
		return nil, wrong
	}
	rest, ok := strings.CutPrefix(string(text), cursorPrefix)
	if !ok || json.Unmarshal([]byte(rest), &place) != nil || place == nil {
		return nil, wrong
	}
	return place, nil
}

// order is a key that a query sorts by, in camelCase or snake_case.
type order struct{ key, direction string }

// window reads the arguments of a connection.
func window(first *int32, after *string, last *int32, before *string, by []order) (w store.Window, err error) {
	w.Limit = pageSize
	switch {
	case first != nil && (last != nil || before != nil):
		return w, invalid("first goes with after, not with last or before")
	case after != nil && before != nil:
		return w, invalid("a page lies after one cursor or before one, not both")
	case last != nil && before == nil:
		return w, invalid("last needs before: the cursor that the page lies before")
	case first != nil:
		w.Limit = int(*first)
	case last != nil:
		w.Limit = int(*last)
	}
	if w.Limit < 0 || w.Limit > store.MaxPage {
		return w, invalid("a page has between 0 and %d items, not %d", store.MaxPage, w.Limit)
	}
	for _, o := range by {
		if o.direction != "asc" && o.direction != "desc" {
			return w, invalid("the order is asc or desc, not %.40q", o.direction)
		}
		w.Order = append(w.Order, store.OrderKey{Key: snake(o.key), Desc: o.direction == "desc"})
	}
	switch {
	case after != nil:
		w.Place, err = decodeCursor(*after)
	case before != nil:
		w.Backward = true
		w.Place, err = decodeCursor(*before)
	}
	return w, err
}

// snake turns resourceType into resource_type.
func snake(key string) string {
	var b strings.Builder
	for _, r := range key {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func invalid(format string, args ...any) error {
	return fault.New("graphql", fault.Invalid, fmt.Sprintf(format, args...))
}
