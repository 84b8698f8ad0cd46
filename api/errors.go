package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/solve"
	"ordain.dev/ordain/server/edge"
)

// errorAnswer is the body of an error.
type errorAnswer struct {
	Message string        `json:"message"`
	Details *errorDetails `json:"error_details,omitempty"`
	// MissingFields are fields of a provider that the user of a cluster has to give.
	MissingFields []string `json:"missingFields,omitempty"`
	// Reasons are conditions that cannot hold together, so that a cluster has no layout; Hint is what to change.
	Reasons []string `json:"reasons,omitempty"`
	Hint    string   `json:"hint,omitempty"`
	// Metadata has warnings.
	Metadata *warnings `json:"metadata,omitempty"`
	// Problems are what is wrong with an entity of the catalogue, each with its field.
	Problems []problem `json:"problems,omitempty"`
}

// explain adds the parts of what is wrong with a cluster or its catalogue, for programs.
func (a *errorAnswer) explain(err error) {
	var missing *cluster.MissingFields
	if errors.As(err, &missing) {
		a.MissingFields = missing.Fields
	}
	var none *solve.Contradiction
	if errors.As(err, &none) {
		a.Reasons, a.Hint = none.Reasons, none.Hint
	}
	var wrong *catalogue.Invalid
	if errors.As(err, &wrong) {
		a.Problems = problemsOf(wrong.Problems)
	}
}

type errorDetails struct {
	ValidationErrors []fieldError `json:"validation_errors"`
}

// bare is an error as old calls answer it: a text without a prefix, or no body at all.
type bare struct {
	code    int
	message string // empty: no body
	// metadata has warnings beside the message.
	metadata *warnings
}

func (b *bare) Error() string { return b.message }

// prefixes begin the message of an error, by status code.
var prefixes = map[int]string{
	http.StatusBadRequest:          "Invalid request: ",
	http.StatusUnauthorized:        "Access to this resource is unauthorized: ",
	http.StatusForbidden:           "Access denied: ",
	http.StatusNotFound:            "Request or referenced resource does not exist: ",
	http.StatusConflict:            "Request conflicts with the current state of the resource: ",
	http.StatusInternalServerError: "An unexpected error occurred in the server while processing the request: ",
}

// statusOf maps a fault to a status code.
func statusOf(err error) int {
	var missing *cluster.MissingFields
	if errors.As(err, &missing) {
		return http.StatusBadRequest
	}
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
	case fault.TooMany:
		return http.StatusTooManyRequests
	case fault.Unavailable, fault.Exhausted:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// as500 turns a fault of one kind, such as the conflict of a taken name, into the status 500, which clients of the
// reference expect of it.
func as500(err error, kind fault.Kind) error {
	if fault.Is(err, kind) {
		return &bare{
			code:    http.StatusInternalServerError,
			message: prefixes[http.StatusInternalServerError] + err.Error(),
		}
	}
	return err
}

// as404 gives a fault that something does not exist a message of its own, without a prefix; empty: no body at all.
func as404(err error, message string) error {
	if fault.Is(err, fault.NotFound) {
		return &bare{code: http.StatusNotFound, message: message}
	}
	return err
}

// fail answers with an error.
func (s *server) fail(g *gin.Context, err error) {
	var plain *bare
	var args *argumentError
	switch {
	case errors.As(err, &plain) && plain.message == "":
		send(g, plain.code, nil)
	case errors.As(err, &plain):
		send(g, plain.code, errorAnswer{Message: plain.message, Metadata: plain.metadata})
	case errors.As(err, &args):
		send(g, http.StatusBadRequest, errorAnswer{
			Message: prefixes[http.StatusBadRequest] + args.Error(), Details: &errorDetails{args.fields},
		})
	case errors.Is(err, edge.ErrTooLarge):
		send(g, http.StatusRequestEntityTooLarge, errorAnswer{
			Message: prefixes[http.StatusBadRequest] + err.Error(),
		})
	case errors.Is(err, edge.ErrContentType):
		send(g, http.StatusUnsupportedMediaType, errorAnswer{
			Message: prefixes[http.StatusBadRequest] + err.Error(),
		})
	case errors.Is(err, edge.ErrBusy):
		g.Header("Retry-After", "5")
		send(g, http.StatusServiceUnavailable, errorAnswer{Message: err.Error()})
	default:
		s.failWith(g, statusOf(err), err)
	}
}

func (s *server) failWith(g *gin.Context, status int, err error) {
	message := err.Error()
	if status == http.StatusInternalServerError {
		s.log.Error("a call failed", "method", g.Request.Method, "path", g.Request.URL.Path, "error", err)
		var known *fault.Error
		if !errors.As(err, &known) {
			message = "see the server's log" // an unknown error may contain anything
		}
	}
	answer := errorAnswer{Message: prefixes[status] + message}
	answer.explain(err)
	send(g, status, answer)
}
