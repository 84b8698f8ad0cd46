package diag

import (
	"encoding/json"
	"io"
)

// ReportVersion is the version of Report. docs/diagnostics.md describes on what programs may rely; a
// change that breaks that changes the version.
const ReportVersion = 1

// Report is what `-o json` prints.
type Report struct {
	Version     int          `json:"version"`
	Success     bool         `json:"success"`
	Diagnostics []Diagnostic `json:"diagnostics"`
	// Output are the lines that plug-ins printed.
	Output []string `json:"output"`
}

// NewReport makes the report of a compile: its errors, beginning with the one that stopped it, and
// then its warnings.
func NewReport(errors, warnings []Diagnostic, output []string) Report {
	r := Report{Version: ReportVersion, Success: len(errors) == 0, Diagnostics: []Diagnostic{}, Output: []string{}}
	r.Diagnostics = append(append(r.Diagnostics, errors...), warnings...)
	r.Output = append(r.Output, output...)
	return r
}

// Write writes the report as JSON.
func (r Report) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
