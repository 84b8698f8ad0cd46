package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// unexpected begins the message of the status 500.
const unexpected = "An unexpected error occurred in the server while processing the request: "

// Problem is something wrong with a field of an entity of the catalogue.
type Problem struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

// String returns the field and what is wrong with it.
func (p Problem) String() string {
	if p.Field == "" {
		return p.Text
	}
	return p.Field + ": " + p.Text
}

// Refused is a fault for which the server has told the parts of what is wrong. Its text has a line for each.
type Refused struct {
	fault         error
	MissingFields []string  `json:"missingFields"` // of a provider
	Reasons       []string  `json:"reasons"`       // why a cluster has no layout
	Hint          string    `json:"hint"`
	Problems      []Problem `json:"problems"`
}

// Unwrap returns the fault.
func (r *Refused) Unwrap() error { return r.fault }

// Error returns the message without the parts, and then the parts, one on each line.
func (r *Refused) Error() string {
	var lines []string
	for _, p := range r.Problems {
		lines = append(lines, p.String())
	}
	lines = append(lines, r.Reasons...)
	message := r.fault.Error()
	for _, line := range lines {
		if i := strings.Index(message, line); i > 0 {
			message = strings.TrimRight(message[:i], ": \n")
		}
	}
	lines = slices.Insert(lines, 0, message)
	for _, name := range r.MissingFields {
		lines = append(lines, "missing: "+name)
	}
	text := strings.Join(lines, "\n  ")
	if r.Hint != "" {
		text += "\n" + r.Hint
	}
	return text
}

// kinds are the faults that status codes stand for; others are Internal.
var kinds = map[int]fault.Kind{
	http.StatusBadRequest: fault.Invalid, http.StatusUnauthorized: fault.Unauthorized,
	http.StatusForbidden: fault.Forbidden, http.StatusNotFound: fault.NotFound, http.StatusConflict: fault.Conflict,
	http.StatusTooManyRequests: fault.TooMany, http.StatusServiceUnavailable: fault.Unavailable,
}

// refusal turns an error of the server into a fault.
func refusal(code int, text []byte) error {
	kind, known := kinds[code]
	if !known {
		kind = fault.Internal
	}
	var body struct {
		Message string `json:"message"`
		Refused
	}
	if json.Unmarshal(text, &body) != nil || body.Message == "" {
		body.Message = fmt.Sprintf("the server answered %d", code)
	}
	// A value that a setting cannot take is answered like an internal error, as clients of the reference expect. People
	// want to read what is wrong with the value.
	if why, ok := strings.CutPrefix(body.Message, unexpected); ok && strings.HasPrefix(why, "setting ") {
		kind, body.Message = fault.Invalid, why
	}
	err := fault.New("client.Call", kind, body.Message)
	if len(body.MissingFields) == 0 && len(body.Reasons) == 0 && len(body.Problems) == 0 {
		return err
	}
	body.fault = err
	return &body.Refused
}
