// Package callback answers the calls that handlers make to the server with a client
// (get_client() of a handler, SyncClient of a reference): for facts, parameters and
// the data of resources.
//
//	handler ─ client.get_param(id=…) ─▶ executor's channel ─▶ Desk ─▶ the REST API, in this process
//
// A handler names a call and its arguments, never a path; calls.go lists the calls.
// No credentials are involved: the desk adds the environment that the executor
// belongs to, with a principal that may act only there, and rejects any other.
package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// maxAnswer is the size in bytes of the largest answer that a handler gets.
const maxAnswer = 16 << 20

// Desk answers the calls of the handlers of one environment.
type Desk struct {
	api func() http.Handler
	env intent.EnvironmentID
}

// New makes the desk of an environment. api returns the REST API; it is called for
// each call of a handler, because executors may be made before the API.
func New(env intent.EnvironmentID, api func() http.Handler) (*Desk, error) {
	if env == (intent.EnvironmentID{}) || api == nil {
		return nil, errors.New("callback.New: an environment and an API are needed")
	}
	return &Desk{api: api, env: env}, nil
}

// Call makes the call with this name. It returns the status code and the body, as a
// client of the API would see them; known is false if handlers cannot make the call.
func (d *Desk) Call(
	ctx context.Context,
	name string,
	positional []json.RawMessage,
	named map[string]json.RawMessage,
) (code int, body json.RawMessage, known bool) {
	c, known := calls[name]
	if !known {
		return 0, nil, false
	}
	args, err := c.arguments(positional, named)
	if err == nil {
		err = d.inEnvironment(c, args)
	}
	if err != nil {
		return refused(http.StatusBadRequest, name+": "+err.Error())
	}
	r, err := c.request(access.With(ctx, access.OfHandlers(d.env)), args)
	if err != nil {
		return refused(http.StatusBadRequest, name+": "+err.Error())
	}
	r.Header.Set("X-Inmanta-tid", d.env.String())
	w := &answer{ResponseRecorder: httptest.NewRecorder()}
	d.api().ServeHTTP(w, r)
	if w.tooLarge {
		return refused(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("%s: the answer is larger than %d bytes; ask for less with limit", name, maxAnswer))
	}
	if content := w.Body.Bytes(); json.Valid(content) {
		body = content
	}
	return w.Code, body, true
}

// refused returns an error in the API's form.
func refused(code int, why string) (int, json.RawMessage, bool) {
	body, _ := json.Marshal(map[string]string{"message": why}) // a string can always be encoded
	return code, body, true
}

// answer records the API's answer, up to a limit.
type answer struct {
	*httptest.ResponseRecorder
	tooLarge bool
}

func (a *answer) Write(p []byte) (int, error) {
	if a.Body.Len()+len(p) > maxAnswer {
		a.tooLarge = true
		return len(p), nil
	}
	return a.ResponseRecorder.Write(p)
}

func (a *answer) WriteString(s string) (int, error) { return a.Write([]byte(s)) }

// inEnvironment rejects arguments that name another environment. It removes tid,
// because the request has the environment in a header.
func (d *Desk) inEnvironment(c call, args map[string]json.RawMessage) error {
	for _, name := range []string{"tid", c.env} {
		given, ok := args[name]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(given, &text) != nil {
			return fmt.Errorf("%s is not the id of an environment", name)
		}
		if id, err := uuid.Parse(text); err != nil || id != d.env {
			return fmt.Errorf("a handler can only ask about its own environment %s, not %q", d.env, text)
		}
	}
	delete(args, "tid")
	return nil
}

// arguments returns all arguments by name, without those that are null.
func (c call) arguments(
	positional []json.RawMessage,
	named map[string]json.RawMessage,
) (map[string]json.RawMessage, error) {
	names := strings.Fields(c.args)
	if len(positional) > len(names) {
		return nil, fmt.Errorf("takes %d arguments, got %d", len(names), len(positional))
	}
	args := maps.Clone(named)
	if args == nil {
		args = map[string]json.RawMessage{}
	}
	for i, value := range positional {
		if _, twice := args[names[i]]; twice {
			return nil, fmt.Errorf("got %s twice", names[i])
		}
		args[names[i]] = value
	}
	for name, value := range args {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("has no argument %q; there are %s", name, strings.Join(names, ", "))
		}
		if string(value) == "null" {
			delete(args, name)
		}
	}
	return args, nil
}

// request makes the request of a call. Arguments that the path does not take go into
// the body, or into the query if the method has no body.
func (c call) request(ctx context.Context, args map[string]json.RawMessage) (*http.Request, error) {
	path := c.path
	for {
		before, rest, found := strings.Cut(path, "{")
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		given, ok := args[name]
		if !ok {
			return nil, fmt.Errorf("the argument %s is missing", name)
		}
		text := plain(given)
		if text == "" || text == "." || text == ".." {
			return nil, fmt.Errorf("the argument %s cannot be %q", name, text)
		}
		delete(args, name)
		path = before + url.PathEscape(text) + after
	}
	var body io.Reader = http.NoBody
	if c.verb == http.MethodGet || c.verb == http.MethodHead {
		path += "?" + query(args)
	} else {
		content, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(content)
	}
	r, err := http.NewRequestWithContext(ctx, c.verb, path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

// query encodes arguments as the API expects them in a query: it repeats the name
// for the items of a list, and writes name.key for the entries of an object.
func query(args map[string]json.RawMessage) string {
	q := url.Values{}
	for name, value := range args {
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) == nil {
			for key, one := range object {
				add(q, name+"."+key, one)
			}
			continue
		}
		add(q, name, value)
	}
	return strings.ReplaceAll(q.Encode(), "+", "%20")
}

func add(q url.Values, name string, value json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		list = []json.RawMessage{value}
	}
	for _, one := range list {
		q.Add(name, plain(one))
	}
}

// plain returns a JSON string without its quotes, and any other value as it is written.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
