package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/internal/jsontext"
	"ordain.dev/ordain/server/edge"
)

const (
	// maxValues and maxDepth bound what a body may become when it is decoded.
	maxValues = 500_000
	maxDepth  = 200
	// valueCost is about the memory in bytes that a decoded value takes.
	valueCost = 128
	// fewValues is how many values do not count against the budget of all bodies.
	fewValues = 1000
	// maxScalar is the length in bytes of the longest text that is decoded before an argument asks for it.
	maxScalar = 4096
)

// bodyArguments reads the body, which is empty, null or an object, and may be in gzip. Objects, lists and long texts
// stay as they are until an argument takes them.
func bodyArguments(r *http.Request, limit int64, most int, share *edge.Share) (map[string]any, error) {
	args := map[string]any{}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return args, nil
	}
	body, err := readObject(r, limit, most, share)
	if err != nil {
		return nil, err
	}
	for name, text := range jsontext.Members(body) {
		switch {
		case text[0] == '{', text[0] == '[', len(text) > maxScalar:
			args[name] = text
		default:
			args[name] = decoded(text)
		}
	}
	return args, nil
}

// valuesOf returns how many values the body of a call may have.
func valuesOf(args any) int {
	if b, ok := args.(interface{ maxValues() int }); ok {
		return b.maxValues()
	}
	return maxValues
}

// readObject reads a body that is one JSON object within the bounds; nil: it is empty or null.
func readObject(r *http.Request, limit int64, most int, share *edge.Share) ([]byte, error) {
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	if err := edge.CheckJSON(r); err != nil {
		return nil, err
	}
	body, err := share.Read(r, limit)
	switch {
	case errors.Is(err, edge.ErrTooLarge), errors.Is(err, edge.ErrBusy):
		return nil, err
	case err != nil:
		return nil, invalid("%v", err)
	case len(bytes.TrimSpace(body)) == 0:
		return nil, nil
	}
	if !json.Valid(body) {
		var nothing struct{}
		return nil, invalid("the body is not valid JSON: %v", json.Unmarshal(body, &nothing))
	}
	switch bytes.TrimSpace(body)[0] {
	case '{':
	case 'n': // null
		return nil, nil
	default:
		return nil, invalid("the body must be a JSON object")
	}
	shape := jsontext.Measure(body)
	if shape.Values > most || shape.Depth > maxDepth {
		return nil, invalid("the body holds more than %d values, or they are nested more than %d deep",
			most, maxDepth)
	}
	if shape.Values > fewValues && most == maxValues { // a whole version is never decoded as a whole
		if err := share.Take(r.Context(), int64(shape.Values)*valueCost); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// decoded decodes a value that is still JSON text, and returns others as they are. Numbers stay as they were written.
func decoded(value any) (v any) {
	text, ok := value.(json.RawMessage)
	if !ok {
		return value
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		panic("api: the body was checked to be JSON: " + err.Error())
	}
	return v
}

// base64Content is an argument whose text is base64. It is decoded where it lies in the body, since it may be large.
type base64Content []byte

func (c *base64Content) set(value any) error {
	var text []byte
	switch x := value.(type) {
	case string:
		text = []byte(x)
	case json.RawMessage:
		if len(x) < 2 || x[0] != '"' {
			return errors.New("Input should be a valid string")
		}
		text = x[1 : len(x)-1]
		if bytes.IndexByte(text, '\\') >= 0 {
			var s string
			if err := json.Unmarshal(x, &s); err != nil {
				return err
			}
			text = []byte(s)
		}
	default:
		return errors.New("Input should be a valid string")
	}
	// Each piece is whole groups of four, and its content goes before the piece that comes next.
	const piece = 4 << 10
	var buffer [piece / 4 * 3]byte
	n := 0
	for from := 0; from < len(text); from += piece {
		m, err := base64.StdEncoding.Decode(buffer[:], text[from:min(from+piece, len(text))])
		if err == nil && m < len(buffer) && from+piece < len(text) {
			err = errors.New("there is padding before its end")
		}
		if err != nil {
			return fmt.Errorf("the content is not base64: %w", err)
		}
		n += copy(text[n:], buffer[:m])
	}
	*c = text[:n:n]
	return nil
}

// maxText is the length in bytes of the longest text that an argument takes, unless its tag max allows more. Names must
// fit into an index of the database, which holds 2,700 bytes.
const maxText = 2000

// checkText refuses a text that the database cannot store.
func checkText(s string, limit int) error {
	switch {
	case len(s) > limit:
		return fmt.Errorf("Input is longer than %d bytes", limit)
	case !utf8.ValidString(s):
		return errors.New("Input is not valid UTF-8")
	case strings.Contains(s, "\x00"):
		return errors.New("Input contains the character NUL")
	}
	return nil
}

// plain turns each json.Number into an int where it is one, and else into a float64. It refuses what the database
// cannot store.
func plain(v any) (any, error) {
	var err error
	switch x := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(x.String()); err == nil {
			return n, nil
		}
		f, err := x.Float64()
		if err != nil || math.IsInf(f, 0) {
			return nil, errors.New("Input contains a number that is too large")
		}
		return f, nil
	case string:
		return x, checkText(x, math.MaxInt)
	case map[string]any:
		for k, item := range x {
			if err := checkText(k, maxText); err != nil {
				return nil, err
			}
			if x[k], err = plain(item); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, item := range x {
			if x[i], err = plain(item); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
