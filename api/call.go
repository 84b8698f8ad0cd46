package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/edge"
	"ordain.dev/ordain/server/store"
)

// calls are the calls of the API. Each is declared once, with its verb, its path, a sentence about it and the method
// that answers it. The types of that method's argument and result describe the call in the OpenAPI document.
type calls struct {
	server   *server
	router   *gin.Engine
	group    string // of the calls that are being declared
	declared []*declaration
}

// declaration is what the OpenAPI document says of a call.
type declaration struct {
	group        string // the heading that it stands under
	method, path string
	summary      string
	verb         access.Verb  // what the sender must be allowed to do
	handler      string       // the name of the method that answers
	args         reflect.Type // a struct with arg tags
	answer       reflect.Type // of the body; nil when it has none
	status       int          // of success
	list         *store.List  // what the call returns pages of; nil: it is not paged
	uploads      bool         // the body may be as large as a file
	acts         bool         // a GET that does something
	shares       bool         // equal reads that wait share one load
}

// option is one more thing to declare of a call.
type option func(*declaration)

// accepted says that a call answers 202: what it asks for is yet to happen.
func accepted(d *declaration) { d.status = http.StatusAccepted }

// uploads says that the body of a call may be as large as a file.
func uploads(d *declaration) { d.uploads = true }

// named gives a call the name of a method that answers it by way of another function.
func named(handler string) option { return func(d *declaration) { d.handler = handler } }

// acts says that a GET does something, so that a page of another site must not send it.
func acts(d *declaration) { d.acts = true }

// pagesOf says that a call returns pages of a list.
func pagesOf(l *store.List) option { return func(d *declaration) { d.list = l } }

// data is the envelope of the answers of version 2.
type data[T any] struct {
	Data T `json:"data"`
}

func (d data[T]) setHeaders(h http.Header) {
	if own, ok := any(d.Data).(interface{ setHeaders(http.Header) }); ok {
		own.setHeaders(h)
	}
}

// v2 declares a call whose answer stands under data.
func v2[A, R any](
	c *calls, method, path, summary string, verb access.Verb,
	handle func(context.Context, A) (R, error), options ...option,
) {
	d := describe[A](method, path, summary, verb, handle, options)
	d.answer = reflect.TypeFor[data[R]]()
	serve(c, d, func(ctx context.Context, a A) (any, error) {
		r, err := handle(ctx, a)
		return data[R]{r}, err
	})
}

// whole declares a call whose answer is the whole body, as in version 1, where each call has an envelope of its own.
func whole[A, R any](
	c *calls, method, path, summary string, verb access.Verb,
	handle func(context.Context, A) (R, error), options ...option,
) {
	d := describe[A](method, path, summary, verb, handle, options)
	d.answer = reflect.TypeFor[R]()
	serve(c, d, func(ctx context.Context, a A) (any, error) { return handle(ctx, a) })
}

// The bodies of calls that have nothing to say.
type (
	noBody   struct{}          // an empty body
	nullData = data[*struct{}] // {"data": null}
	object   struct{}          // {}
	body     interface{ noBody | nullData | object }
)

// done declares a call that answers nothing but B.
func done[B body, A any](
	c *calls, method, path, summary string, verb access.Verb, handle func(context.Context, A) error, options ...option,
) {
	d := describe[A](method, path, summary, verb, handle, options)
	var answer B
	empty := reflect.TypeFor[B]() == reflect.TypeFor[noBody]()
	if !empty {
		d.answer = reflect.TypeFor[B]()
	}
	serve(c, d, func(ctx context.Context, a A) (any, error) {
		err := handle(ctx, a)
		if empty {
			return nil, err
		}
		return answer, err
	})
}

func describe[A any](
	method, path, summary string, verb access.Verb, handle any, options []option,
) *declaration {
	d := &declaration{
		method: method, path: path, summary: summary, verb: verb, handler: nameOf(handle), args: reflect.TypeFor[A](),
		status: http.StatusOK,
	}
	if _, ok := verb.Define(); !ok {
		panic(fmt.Sprintf("api: %s %s needs a verb of access.Verbs", method, path))
	}
	for _, o := range options {
		o(d)
	}
	return d
}

// nameOf returns the name of a method.
func nameOf(handle any) string {
	name := runtime.FuncForPC(reflect.ValueOf(handle).Pointer()).Name()
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "-fm")
}

// serve routes a call. A nil answer is an empty body.
func serve[A any](c *calls, d *declaration, handle func(context.Context, A) (any, error)) {
	checkArguments(reflect.ValueOf(new(A)).Elem())
	d.group = c.group
	c.declared = append(c.declared, d)
	if d.shares {
		load := handle
		handle = func(ctx context.Context, a A) (any, error) { return share(ctx, c.server, d, a, load) }
	}
	pattern, names := pathPattern(d.path)
	c.router.Handle(d.method, pattern, func(g *gin.Context) {
		inPath := make(map[string]string, len(names))
		for i, p := range g.Params {
			if p.Value == "" {
				htmlError(g.Writer, http.StatusNotFound) // a path that lacks a segment
				return
			}
			inPath[names[i]] = p.Value
		}
		if tid := g.GetHeader(tidHeader); tid != "" {
			g.Header(tidHeader, tid)
		}
		answer, err := perform(c.server, d, g.Request, inPath, handle)
		if err != nil {
			c.server.fail(g, err)
			return
		}
		if f, ok := answer.(fileAnswer); ok {
			f.stream(g)
			return
		}
		status := d.status
		if s, ok := answer.(interface{ statusCode() int }); ok {
			status, answer = s.statusCode(), nil
		}
		if s, ok := answer.(interface{ ownStatus() int }); ok { // with its body
			status = s.ownStatus()
		}
		if h, ok := answer.(interface{ setHeaders(http.Header) }); ok {
			h.setHeaders(g.Writer.Header())
		}
		if d.tagged() && status == http.StatusOK && answer != nil {
			ready, ok := answer.(*readyAnswer)
			if !ok {
				ready = readyOf(answer)
			}
			g.Header("Content-Type", "application/json")
			if tag(g, ready.etag) {
				g.Status(http.StatusNotModified)
				return
			}
			ready.serve(g)
			return
		}
		send(g, status, answer)
	})
}

// perform finds out who sends a request, reads its arguments, checks that the sender may do what the call does, does
// it, and records it if it changes something.
func perform[A any](
	s *server, d *declaration, r *http.Request, inPath map[string]string,
	handle func(context.Context, A) (any, error),
) (answer any, err error) {
	r, err = access.Enter(s.auth, r.WithContext(people.WithOrigin(r)))
	if err != nil && !isPublic(d.verb) { // a login with a token that has expired is a login
		return nil, err
	}
	if err := s.greet(r.Context(), d.verb); err != nil {
		return nil, err
	}
	share := s.bodies.Share()
	defer share.Release()
	var args A
	wrong := s.read(r, d, inPath, share, &args)
	if wrong != nil && !namesTarget(&args) {
		return nil, wrong
	}
	ctx, trail := s.audit.Begin(r, "api", d.verb)
	defer func() { s.audit.End(ctx, trail, err) }()
	if err := s.allow(ctx, d.verb, &args); err != nil {
		return nil, err // a refusal hides what else is wrong with the call
	}
	if wrong != nil {
		return nil, wrong
	}
	return handle(ctx, args)
}

func isPublic(v access.Verb) bool {
	d, _ := v.Define()
	return d.Label == access.Public
}

// pathPattern translates /a/{id}/b for gin, which wants a wildcard to have the same name in all paths that share its
// beginning: each is called after its place.
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

// read fills in the arguments of a call, and finds the environment that it works in.
func (s *server) read(
	r *http.Request, d *declaration, inPath map[string]string, share *edge.Share, args any,
) error {
	if d.acts {
		if err := edge.CheckActingGet(r); err != nil {
			return err
		}
	}
	limit := s.maxBody
	if d.uploads {
		limit = s.maxUpload
	}
	given, err := gather(r, inPath, limit, share, args)
	if err != nil {
		return err
	}
	if scoped, ok := args.(interface{ environment() *uuid.UUID }); ok {
		if err := scope(r.Header.Get(tidHeader), given, scoped.environment()); err != nil {
			return err
		}
	}
	if d, ok := args.(interface{ setDefaults() }); ok {
		d.setDefaults()
	}
	return decode(given, args)
}

// scope finds the id of the environment that a call works in; allow looks whether it exists.
func scope(header string, given map[string]any, env *uuid.UUID) error {
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
		return &argumentError{fields: []fieldError{{
			Type: "uuid_parsing", Loc: []string{"tid"}, Msg: "Input should be a valid UUID: " + err.Error(),
			Input: header,
		}}}
	}
	*env = id
	return nil
}

// send writes an answer; a nil one is an empty body.
func send(g *gin.Context, status int, answer any) {
	g.Header("Content-Type", "application/json")
	if answer == nil {
		g.Status(status)
		return
	}
	text := encode(answer)
	g.Status(status)
	_, _ = g.Writer.Write(text) // it fails when the client has gone away
}

func encode(answer any) []byte {
	text, err := json.Marshal(answer)
	if err != nil {
		panic("api: an answer is plain data: " + err.Error())
	}
	return text
}
