package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/internal/diag"
)

// output is a command's standard output. It remembers the first error of
// writing, so that a command whose output was lost fails even where its code
// did not look at the error of each line that it printed.
type output struct {
	io.Writer

	mu  sync.Mutex
	err error
}

// Write writes to the standard output and keeps the first error.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.mu.Unlock()
	}
	return n, err
}

// lost returns the first error of writing, or nil.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// sayer tells what came of a compile: to people in text, to programs as JSON.
type sayer struct{ format string }

func (s *sayer) flag(c *cobra.Command) {
	c.Annotations = map[string]string{reports: "yes"}
	c.Flags().StringVarP(&s.format, "output", "o", "text", "text or json")
}

func (s *sayer) check() error {
	if s.format != "text" && s.format != "json" {
		return usageError{fmt.Errorf("there is no output format %q; there are text and json", s.format)}
	}
	return nil
}

func (s *sayer) json() bool { return s.format == "json" }

// outcome prints the warnings and errors of a compile; its error ends the
// command with status 1. In text, what plug-ins printed goes to standard
// output and all else to standard error.
func (s *sayer) outcome(c *cobra.Command, out *compiler.Outcome) error {
	doc := out.Document
	if s.json() {
		if err := diag.NewReport(doc.Diagnostics, doc.Warnings, doc.Output).Write(c.OutOrStdout()); err != nil {
			return err
		}
	} else {
		for _, line := range doc.Output {
			fmt.Fprintln(c.OutOrStdout(), line)
		}
		s.text(c.ErrOrStderr(), doc.Warnings, doc.Diagnostics)
	}
	if !doc.Success {
		return errSaid
	}
	return nil
}

func (s *sayer) text(w io.Writer, warnings, errors []diag.Diagnostic) {
	style := diag.Style{Colour: colourful(w)}
	fmt.Fprint(w, style.RenderAll(diag.Unique(warnings)))
	if len(warnings) > 0 && len(errors) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, style.RenderAll(errors))
	if len(errors) > 0 {
		fmt.Fprint(w, style.Closing(errors))
	}
}

// colourful tells terminals whose owner did not ask for plain text.
func colourful(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	text string
}

func (e exitError) Error() string { return e.text }
