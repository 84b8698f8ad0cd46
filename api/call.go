package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
)

// reply is what a call answers.
type reply struct {
	code     int // 0: 200
	body     any // nil: no body at all
	location string
}

// v1 answers with an object of the call's own.
func v1(object map[string]any) (reply, error) {
	if object == nil {
		object = map[string]any{}
	}
	return reply{body: object}, nil
}

// v2 answers under data.
func v2(data any) (reply, error) { return reply{body: map[string]any{"data": data}}, nil }

// nothing is the answer of a v2 call that returns nothing: an empty body.
func nothing() (reply, error) { return reply{}, nil }

// call declares one call: its verb, its path, and the function that answers
// it. A holds its arguments.
func call[A any](
	s *server,
	g *gin.Engine,
	method, path string,
	do func(context.Context, A) (reply, error),
	defaults ...A,
) {
	checkArguments(reflect.ValueOf(new(A)).Elem())
	pattern, names := pathPattern(path)
	g.Handle(method, pattern, func(c *gin.Context) {
		w, r := c.Writer, c.Request
		inPath := make(map[string]string, len(names))
		for i, p := range c.Params {
			if p.Value == "" {
				htmlError(w, http.StatusNotFound) // a path that lacks a segment
				return
			}
			inPath[names[i]] = p.Value
		}
		var args A
		if len(defaults) > 0 {
			args = defaults[0]
		}
		if tid := r.Header.Get(tidHeader); tid != "" {
			w.Header().Set(tidHeader, tid)
		}
		answer, err := s.run(r, inPath, &args, func(ctx context.Context) (reply, error) { return do(ctx, args) })
		if err != nil {
			s.fail(w, r, err)
			return
		}
		send(w, answer)
	})
}

// pathPattern translates /a/{id}/b for gin, which wants a wildcard to have the
// same name in all paths that share its beginning: it is called after its place.
func pathPattern(path string) (pattern string, names []string) {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
			segments[i] = ":" + strconv.Itoa(i)
		}
	}
	return strings.Join(segments, "/"), names
}

func (s *server) run(r *http.Request, inPath map[string]string, args any, do func(context.Context) (reply, error)) (answer reply, err error) {
	ctx := r.Context()
	given, err := gather(r, inPath, s.maxBody)
	if err != nil {
		return reply{}, err
	}
	if scoped, ok := args.(interface{ environment() *uuid.UUID }); ok {
		if err := s.scope(ctx, r.Header.Get(tidHeader), given, scoped.environment()); err != nil {
			return reply{}, err
		}
	}
	if err := decode(given, args); err != nil {
		return reply{}, err
	}
	return do(ctx)
}

// scope finds the environment that a call works in.
func (s *server) scope(ctx context.Context, header string, given map[string]any, env *uuid.UUID) error {
	if header == "" {
		header, _ = given["tid"].(string)
	}
	if header == "" {
		return &argumentError{
			fields: []fieldError{{Type: "missing", Loc: []string{"tid"}, Msg: "Field 'tid' is required."}},
		}
	}
	id, err := uuid.Parse(header)
	if err != nil {
		return &argumentError{
			fields: []fieldError{
				{
					Type:  "uuid_parsing",
					Loc:   []string{"tid"},
					Msg:   "Input should be a valid UUID: " + err.Error(),
					Input: header,
				},
			},
		}
	}
	*env = id
	return s.mustExist(ctx, id)
}

// mustExist refuses an unknown environment in the words that clients know.
func (s *server) mustExist(ctx context.Context, id uuid.UUID) error {
	_, err := s.store.Environment(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return noEnvironment()
	}
	return err
}

func noEnvironment() error {
	return fault.New("api", fault.NotFound, "The given environment id does not exist!")
}

func send(w http.ResponseWriter, answer reply) {
	if answer.code == 0 {
		answer.code = http.StatusOK
	}
	if answer.location != "" {
		w.Header().Set("Location", answer.location)
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.body == nil {
		w.WriteHeader(answer.code)
		return
	}
	text, err := json.Marshal(answer.body)
	if err != nil {
		panic("api: an answer is plain data: " + err.Error())
	}
	w.WriteHeader(answer.code)
	_, _ = w.Write(text) // who asked went away
}

// bare is an error that old calls answer: a text without prefix, or no body.
type bare struct {
	code    int
	message string // empty: no body
}

func (b *bare) Error() string { return b.message }

// prefixes begin the message of an error, by class.
var prefixes = map[int]string{
	http.StatusBadRequest:          "Invalid request: ",
	http.StatusUnauthorized:        "Access to this resource is unauthorized: ",
	http.StatusForbidden:           "Access denied: ",
	http.StatusNotFound:            "Request or referenced resource does not exist: ",
	http.StatusConflict:            "Request conflicts with the current state of the resource: ",
	http.StatusInternalServerError: "An unexpected error occurred in the server while processing the request: ",
}

// codeOf maps a fault to a status code.
func codeOf(err error) int {
	switch fault.KindOf(err) {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Unauthorized:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.Unavailable, fault.Exhausted:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// as500 gives the conflict of a taken name, or a value that a setting cannot
// take, the code that clients of the reference expect.
func as500(err error, kind fault.Kind) error {
	if fault.Is(err, kind) {
		return &bare{
			code:    http.StatusInternalServerError,
			message: prefixes[http.StatusInternalServerError] + err.Error(),
		}
	}
	return err
}

// fail sends an error.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var plain *bare
	if errors.As(err, &plain) {
		if plain.message == "" {
			send(w, reply{code: plain.code})
			return
		}
		send(w, reply{code: plain.code, body: map[string]any{"message": plain.message}})
		return
	}
	var args *argumentError
	if errors.As(err, &args) {
		send(w, reply{code: http.StatusBadRequest, body: map[string]any{
			"message":       prefixes[http.StatusBadRequest] + args.Error(),
			"error_details": map[string]any{"validation_errors": args.fields},
		}})
		return
	}
	if errors.Is(err, errTooLarge) {
		send(
			w,
			reply{code: http.StatusRequestEntityTooLarge, body: map[string]any{"message": prefixes[400] + err.Error()}},
		)
		return
	}
	code := codeOf(err)
	message := err.Error()
	if code == http.StatusInternalServerError {
		s.log.Error("a call failed", "method", r.Method, "path", r.URL.Path, "error", err)
		var known *fault.Error
		if !errors.As(err, &known) {
			message = "see the server's log" // an unknown error may hold anything
		}
	}
	send(w, reply{code: code, body: map[string]any{"message": prefixes[code] + message}})
}
