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

// output is a command's standard output. It remembers the first write error, so
// that a command whose output was lost fails although its code does not check the
// error of each line that it prints.
type output struct {
	io.Writer

	mu  sync.Mutex
	err error
}

// Write writes to the standard output and remembers the first error.
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

// lost returns the first write error, or nil.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// printer prints the outcome of a compile: as text for people, or as JSON for programs.
type printer struct {
	format string
	live   *livePrinter // nil: the output of plug-ins is printed at the end
}

func (p *printer) flag(c *cobra.Command) {
	c.Annotations = map[string]string{reports: "yes"}
	c.Flags().StringVarP(&p.format, "output", "o", "text", "text or json")
}

func (p *printer) check() error {
	if p.format != "text" && p.format != "json" {
		return usageError{fmt.Errorf("there is no output format %q; there are text and json", p.format)}
	}
	return nil
}

func (p *printer) json() bool { return p.format == "json" }

// outcome prints the warnings and errors of a compile, and returns errPrinted if it
// failed. As text, the output of plug-ins goes to standard output and everything
// else to standard error.
func (p *printer) outcome(c *cobra.Command, out *compiler.Outcome) error {
	doc := out.Document
	if p.json() {
		if err := diag.NewReport(doc.Diagnostics, doc.Warnings, doc.Output).Write(c.OutOrStdout()); err != nil {
			return err
		}
	} else {
		for _, line := range p.live.rest(doc.Output) {
			fmt.Fprintln(c.OutOrStdout(), line)
		}
		p.text(c.ErrOrStderr(), doc.Warnings, doc.Diagnostics)
	}
	if !doc.Success {
		return errPrinted
	}
	return nil
}

func (p *printer) text(w io.Writer, warnings, errors []diag.Diagnostic) {
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

// colourful reports whether w is a terminal whose user did not ask for plain text.
func colourful(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// exitError is an error with its own exit code.
type exitError struct {
	code int
	text string
}

func (e exitError) Error() string { return e.text }
