package graphql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"ordain.dev/ordain/api/graphql/schema"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

const (
	// patience is how long a query may take.
	patience = 20 * time.Second
	// atOnce is how many roots of one query are read at a time; each takes a connection to the database.
	atOnce = 2
)

// Config is what a door is made of; all of it is needed.
type Config struct {
	Store  *store.Store
	Logger *slog.Logger
	// Allow checks that the sender may do a verb in an environment, which need not exist.
	Allow func(ctx context.Context, v access.Verb, environment uuid.UUID) error
	// Settings shows the settings of an environment.
	Settings func(intent.Environment) any
}

// Door answers queries. It is safe for concurrent use.
type Door struct {
	cfg      Config
	executor *executor.Executor
	schema   func() (json.RawMessage, error)
}

// Result is what a query led to.
type Result struct {
	Data       json.RawMessage
	Errors     []string
	Extensions map[string]any
}

// Status is the status code of a result: a query without any data has failed.
func (r Result) Status() int {
	if text := string(r.Data); text == "" || text == "null" || text == "{}" {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// New returns a door.
func New(cfg Config) *Door {
	d := &Door{cfg: cfg}
	executable := schema.NewExecutableSchema(schema.Config{Resolvers: resolvers{d}})
	trim(executable)
	d.executor = executor.New(executable)
	d.executor.SetParserTokenLimit(maxTokens)
	d.executor.SetErrorPresenter(d.present)
	d.executor.SetRecoverFunc(func(_ context.Context, p any) error {
		return fault.New("graphql", fault.Internal, fmt.Sprintf("a resolver panicked: %v", p))
	})
	d.executor.Use(openSchema{})
	d.schema = sync.OnceValues(d.introspect)
	return d
}

var trimOnce sync.Once

// trim takes away what gqlgen adds to every schema and the reference's does not have. The schema is one for all doors.
func trim(executable graphql.ExecutableSchema) {
	trimOnce.Do(func() {
		s := executable.Schema()
		delete(s.Directives, "defer") // an answer comes in one piece
		delete(s.Types, "Float")
		delete(s.Types, "ID")
	})
}

// openSchema lets everybody who may send queries ask for the schema.
type openSchema struct{}

func (openSchema) ExtensionName() string                   { return "introspection" }
func (openSchema) Validate(graphql.ExecutableSchema) error { return nil }
func (openSchema) MutateOperationContext(_ context.Context, c *graphql.OperationContext) *gqlerror.Error {
	c.DisableIntrospection = false
	return nil
}

type readingKey struct{}

// Do answers a query. The context says who sends it.
func (d *Door) Do(ctx context.Context, query string, variables map[string]any, operation string) Result {
	if err := check(query, variables); err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx = context.WithValue(ctx, readingKey{}, make(chan struct{}, atOnce))
	ctx = graphql.StartOperationTrace(ctx)
	oc, errs := d.executor.CreateOperationContext(ctx, &graphql.RawParams{
		Query: query, Variables: variables, OperationName: operation,
	})
	if len(errs) > 0 {
		return failed(errs...)
	}
	if oc.Operation.Operation != ast.Query {
		return failed(gqlerror.Errorf("this server answers queries only, no %s", oc.Operation.Operation))
	}
	respond, ctx := d.executor.DispatchOperation(ctx, oc)
	response := respond(ctx)
	out := failed(response.Errors...)
	out.Data = response.Data
	return out
}

func failed(errs ...*gqlerror.Error) Result {
	out := Result{Data: json.RawMessage("null"), Extensions: map[string]any{}}
	for _, err := range errs {
		out.Errors = append(out.Errors, err.Message)
	}
	return out
}

// present turns an error into what the sender reads. The text of an internal one may contain anything: it goes to the
// log. Errors that are no faults are about arguments (see read).
func (d *Door) present(ctx context.Context, err error) *gqlerror.Error {
	out := graphql.DefaultErrorPresenter(ctx, err)
	var told *fault.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Message = fmt.Sprintf("the query took longer than %s: ask for less at a time", patience)
	case !errors.As(err, &told):
	case fault.KindOf(err) == fault.Internal:
		d.cfg.Logger.Error("a GraphQL query failed", "path", out.Path.String(), "error", err)
		out.Message = "see the server's log"
	default:
		out.Message = told.Error()
	}
	return out
}

// read runs a root when fewer than atOnce others of its query are running. Its errors are faults.
func read[T any](ctx context.Context, do func() (T, error)) (out T, err error) {
	running := ctx.Value(readingKey{}).(chan struct{})
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
		out, err = do()
		var known *fault.Error
		if err != nil && !errors.As(err, &known) && ctx.Err() == nil {
			err = fault.Wrap("graphql", fault.Internal, err)
		}
		return out, err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// resolvers answer the roots; each has a file of its own.
type resolvers struct{ door *Door }

// Query makes this the root of the resolvers.
func (r resolvers) Query() schema.QueryResolver { return r }

// selected reports whether a query asks for a field below the root that is being answered: selected(ctx, "edges",
// "node", "attributes").
func selected(ctx context.Context, path ...string) bool {
	oc := graphql.GetOperationContext(ctx)
	fields := graphql.CollectFieldsCtx(ctx, nil)
	for i, name := range path {
		var below []graphql.CollectedField
		found := false
		for _, f := range fields {
			if f.Name != name {
				continue
			}
			found = true
			if i < len(path)-1 {
				below = append(below, graphql.CollectFields(oc, f.Selections, nil)...)
			}
		}
		if !found {
			return false
		}
		fields = below
	}
	return true
}

func ptr[T any](v T) *T { return &v }

// orNil returns nil for a zero value: what is not known is null.
func orNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func pageInfo[T any](w store.Window, s store.Span[T]) (*schema.PageInfo, []string) {
	cursors := make([]string, len(s.Places))
	for i, place := range s.Places {
		cursors[i] = encodeCursor(place)
	}
	// The item of the cursor lies behind.
	out := &schema.PageInfo{HasNextPage: s.More, HasPreviousPage: w.Place != nil}
	if w.Backward {
		out.HasNextPage, out.HasPreviousPage = true, s.More
	}
	if len(cursors) > 0 {
		out.StartCursor, out.EndCursor = &cursors[0], &cursors[len(cursors)-1]
	}
	return out, cursors
}

// total counts the items of a connection, if the query asks how many there are.
func total(ctx context.Context, count func() (int, error)) (*int32, error) {
	if !selected(ctx, "totalCount") {
		return nil, nil
	}
	n, err := count()
	return ptr(int32(n)), err
}
