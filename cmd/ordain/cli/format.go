package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/format"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/diag"
)

// formatter formats files for `ordain format`.
type formatter struct {
	check, diff bool
	out, errs   io.Writer
	unformatted int  // files that are not formatted
	failed      bool // a file could not be read, parsed or written
	printer     printer
	wrong       []diag.Diagnostic // what could not be read, parsed or written, for programs
}

func newFormat() *cobra.Command {
	var f formatter
	c := &cobra.Command{
		Use:   "format [paths]",
		Short: "Write model files in the one canonical style",
		Long: "Formats the .cf files that are named, and those below the folders that are named; without\n" +
			"arguments, those below the current folder.\n" +
			"With - it formats standard input to standard output. The meaning and the comments do not change.\n" +
			"Exit status: 0 done, 1 a file does not parse, or (with --check or --diff) is not formatted.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.printer.check(); err != nil {
				return err
			}
			f.out, f.errs = c.OutOrStdout(), c.ErrOrStderr()
			if !f.printer.json() {
				return f.run(c.InOrStdin(), args)
			}
			var lines bytes.Buffer
			f.out, f.errs = &lines, io.Discard
			err := f.run(c.InOrStdin(), args)
			if err != nil && !errors.Is(err, errPrinted) {
				return err
			}
			report := diag.NewReport(f.wrong, nil, slices.Collect(unterminated(lines.String())))
			report.Success = err == nil
			return errors.Join(report.Write(c.OutOrStdout()), err)
		},
	}
	f.printer.flag(c)
	c.Flags().BoolVar(&f.check, "check", false, "write nothing; name the files that are not formatted")
	c.Flags().BoolVar(&f.diff, "diff", false, "write nothing; show what would change")
	return c
}

func (f *formatter) run(stdin io.Reader, args []string) error {
	if slices.Contains(args, "-") {
		if len(args) > 1 {
			return usageError{errors.New("- cannot be combined with paths: it formats standard input to " +
				"standard output")}
		}
		if f.printer.json() {
			return usageError{
				errors.New("- writes the formatted text to standard output, where -o json writes a report"),
			}
		}
		text, err := io.ReadAll(stdin)
		if err != nil {
			return err
		}
		f.one("<stdin>", text, func(formatted []byte) error {
			_, err := f.out.Write(formatted)
			return err
		})
		return f.result()
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	for _, path := range args {
		if err := f.path(path); err != nil {
			f.fail(err)
		}
	}
	return f.result()
}

// fail records an error and prints it.
func (f *formatter) fail(err error) {
	fmt.Fprintln(f.errs, "ordain: "+err.Error())
	f.wrong = append(f.wrong, failed(err).Diagnostics...)
	f.failed = true
}

// unterminated yields the lines of a text without their line breaks.
func unterminated(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}

func (f *formatter) result() error {
	if f.failed || f.unformatted > 0 && (f.check || f.diff) {
		return errPrinted
	}
	return nil
}

// path formats a file, or all model files below a folder. It skips hidden files and
// folders, such as .env and .git.
func (f *formatter) path(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == root && !d.IsDir():
			return f.file(path)
		case path != root && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.Type().IsRegular() && filepath.Ext(path) == ".cf":
			return f.file(path)
		}
		return nil
	})
}

func (f *formatter) file(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path) // a pipe may never end
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f.one(path, text, func(formatted []byte) error {
		if bytes.Equal(text, formatted) {
			return nil
		}
		fmt.Fprintln(f.out, path)
		return replaceFile(path, formatted)
	})
	return nil
}

// one formats a text and passes it to write, unless it is only to be checked.
func (f *formatter) one(name string, text []byte, write func([]byte) error) {
	formatted, err := format.Source(syntax.FileInfo{Path: name, Namespace: "__config__"}, text)
	if err != nil {
		d := compiler.Diagnose(err)
		if d.Location == nil {
			fmt.Fprintf(f.errs, "%s: %v\n", name, err)
		} else {
			fmt.Fprint(f.errs, d.Render())
		}
		f.wrong = append(f.wrong, d)
		f.failed = true
		return
	}
	same := bytes.Equal(text, formatted)
	if !same {
		f.unformatted++
	}
	switch {
	case f.diff:
		_, err = f.out.Write(diff.Diff(name, text, name+" (formatted)", formatted))
	case f.check && !same:
		fmt.Fprintln(f.out, name)
	case !f.check:
		err = write(formatted)
	}
	if err != nil {
		f.fail(err)
	}
}

// replaceFile replaces the content of a file, whole or not at all, and keeps its
// mode and owner. If path is a link, it replaces the file that the link leads to.
func replaceFile(path string, content []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file; - formats standard input", path)
	}
	return replaceWhole(path, info.Mode(), func(file *os.File) error {
		if _, err := file.Write(content); err != nil {
			return err
		}
		return keepOwner(file, info)
	})
}
