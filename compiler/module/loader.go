package module

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"ordain.dev/ordain/compiler/syntax"
)

// Program is everything that a compile reads.
type Program struct {
	// Files in the order in which their statements are emitted: the main file,
	// then the files of each module together.
	Files []*syntax.File
	// Modules in the order in which they were loaded.
	Modules []*Module
	// AutoStd: std is imported implicitly everywhere.
	AutoStd bool
	// Warnings of all files, and of the loading itself.
	Warnings []syntax.Warning
	// Errors lists why files and modules could not be read, in the order in which
	// they were imported. Missing holds the namespaces that are lost by that.
	Errors  []error
	Missing map[string]bool
}

// lack records a namespace that could not be read. err may be nil: the reason is
// recorded already.
func (p *Program) lack(namespace string, err error) {
	if err != nil {
		p.Errors = append(p.Errors, err)
	}
	if p.Missing == nil {
		p.Missing = map[string]bool{}
	}
	p.Missing[namespace] = true
}

// addFurther records the errors of a file after its first one.
func (p *Program) addFurther(e *syntax.Error) {
	for _, further := range e.Further {
		p.Errors = append(p.Errors, further)
	}
}

// Loader reads the program of a project. It is used once.
type Loader struct {
	project *Project
	site    *site
	autostd bool
	slots   chan struct{} // limits how many files are read at once
	reading sync.WaitGroup

	mu      sync.Mutex
	modules map[string]*moduleRead
	files   map[string]*fileRead // by namespace
}

// A module or file is read in the background as soon as its name is known. done is
// closed when the other fields are set.
type (
	moduleRead struct {
		done   chan struct{}
		module *Module
		err    error
	}
	fileRead struct {
		done chan struct{}
		file *syntax.File
		err  error
		// panicked is the panic of the parser, with its stack; empty: there was none.
		panicked string
	}
)

// NewLoader makes a loader for a project.
func NewLoader(p *Project) *Loader {
	return &Loader{
		project: p, site: &site{dirs: p.SitePackages},
		slots:   make(chan struct{}, runtime.GOMAXPROCS(0)),
		modules: map[string]*moduleRead{}, files: map[string]*fileRead{},
	}
}

// wanted is an import that has not been followed yet.
type wanted struct {
	name      string
	at        syntax.Span
	statement string
	// guessed means that the import was found in a file that does not parse.
	guessed bool
}

// Load reads the entry file and everything that it imports. main is absolute or
// relative to the project. autostd imports std in every file implicitly.
//
// The files are in inmanta-core's order: imports wait on a stack, the one found
// last is followed first, and importing a::b loads a, then a::b.
//
// Load returns the first error, and a program with all of them: it goes on reading
// after an error. The program is nil only if the entry file cannot be read.
func (l *Loader) Load(main string, autostd bool) (*Program, error) {
	l.autostd = autostd
	defer l.reading.Wait()
	if !filepath.IsAbs(main) {
		main = filepath.Join(l.project.Dir, main)
	}
	if autostd {
		l.ahead("std")
	}
	prog := &Program{AutoStd: autostd}
	for _, w := range l.project.Metadata.Warnings {
		prog.Warnings = append(prog.Warnings, syntax.Warning{Kind: KindConfiguration, Message: w})
	}
	file, err := l.read(main, "__config__")
	var parse *syntax.Error
	if errors.As(err, &parse) {
		prog.lack("__config__", err)
		prog.addFurther(parse)
		file = parse.At.File
	} else if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = &Error{
				Kind: KindNoFile, Message: "The file " + l.show(main) + " does not exist",
				Hint: "a project begins in main.cf beside project.yml; another file can be named with --main",
			}
		}
		if e := systemError(l.show(main), err, "the entry file must be a file that can be read; another one can "+
			"be named with --main"); e != nil {
			return nil, e
		}
		return nil, err
	}
	if prog.Errors == nil {
		prog.Files = []*syntax.File{file}
	}
	f := following{
		Loader: l,
		prog:   prog,
		stack:  l.imports(file),
		groups: map[string][]*syntax.File{},
		done:   map[string]bool{},
		known:  map[string]*Module{},
	}
	for len(f.stack) > 0 {
		w := f.stack[len(f.stack)-1]
		f.stack = f.stack[:len(f.stack)-1]
		if !f.done[w.name] {
			f.follow(w)
		}
	}
	for _, m := range prog.Modules {
		if m.pluginsErr != nil {
			prog.Errors = append(prog.Errors, m.pluginsErr)
		}
	}
	for _, name := range f.order {
		prog.Files = append(prog.Files, f.groups[name]...)
	}
	var warnings []syntax.Warning
	for _, f := range prog.Files {
		warnings = append(warnings, f.Warnings...)
	}
	prog.Warnings = append(warnings, prog.Warnings...)
	if prog.Errors != nil {
		return prog, prog.Errors[0]
	}
	return prog, nil
}

// failed wraps an error in one that names the import. A syntax error is returned as
// it is. For a guessed import, failed returns nil: it may not be an import at all.
func (w wanted) failed(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	if w.guessed {
		return nil
	}
	if e.foreign() {
		return e
	}
	return &Error{
		Kind: KindLoading, Message: "Failed to load module " + w.name,
		At: w.at, Statement: w.statement, Cause: e, Hint: e.Hint,
	}
}

// imports lists what a file imports, std first if it is imported implicitly.
func (l *Loader) imports(file *syntax.File) []wanted {
	var list []wanted
	if l.autostd && file.Namespace != "std" && !strings.HasPrefix(file.Namespace, "std::") {
		internal := syntax.Span{
			File: &syntax.File{
				Path: "__internal__",
			}, Start: syntax.Pos{Line: 1, Col: 1}, End: syntax.Pos{Line: 1, Col: 1},
		}
		list = append(list, wanted{name: "std", at: internal, statement: "import std"})
	}
	for _, s := range file.Statements {
		if i, ok := s.(*syntax.Import); ok {
			list = append(list, wanted{name: i.Module.Text, at: i.At, statement: syntax.Render(i)})
		}
	}
	if file.Statements == nil {
		list = append(list, guesses(file)...)
	}
	return list
}

var importLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^\s*import\s+([A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*)\s*(?:as\s+\w+\s*)?(?:#.*)?$`,
	)
})

// guesses lists what the lines of a file that does not parse seem to import, so that
// the errors of those modules are reported too.
func guesses(file *syntax.File) []wanted {
	var list []wanted
	for _, line := range file.Lines {
		if m := importLine().FindStringSubmatch(line); m != nil {
			list = append(list, wanted{name: m[1], guessed: true})
		}
	}
	return list
}

// ahead begins to read the module and the files that an import names.
func (l *Loader) ahead(name string) {
	parts := strings.Split(name, "::")
	l.reading.Go(func() {
		m, err := l.module(parts[0])
		if err != nil {
			return // reported when the import is followed in order
		}
		for i := range parts {
			l.begin(m, strings.Join(parts[:i+1], "::"))
		}
	})
}

// module finds a top-level module. It looks only once for each.
func (l *Loader) module(name string) (*Module, error) {
	l.mu.Lock()
	r, ok := l.modules[name]
	if !ok {
		r = &moduleRead{done: make(chan struct{})}
		l.modules[name] = r
	}
	l.mu.Unlock()
	if !ok {
		r.module, r.err = l.project.findModule(l.site, name)
		close(r.done)
	}
	<-r.done
	return r.module, r.err
}

// begin starts to read the file of a namespace, unless it has started already.
func (l *Loader) begin(m *Module, namespace string) *fileRead {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.files[namespace]
	if !ok {
		r = &fileRead{done: make(chan struct{})}
		l.files[namespace] = r
		l.reading.Go(func() {
			defer close(r.done)
			l.slots <- struct{}{}
			defer func() { <-l.slots }()
			defer func() {
				if cause := recover(); cause != nil {
					r.panicked = fmt.Sprintf("%v\n%s", cause, debug.Stack())
				}
			}()
			r.file, r.err = l.read(m.modelFile(namespace), namespace)
		})
	}
	return r
}

// file waits for the file of a namespace and returns it.
func (l *Loader) file(m *Module, namespace string) (*syntax.File, error) {
	r := l.begin(m, namespace)
	<-r.done
	if r.panicked != "" {
		panic(r.panicked) // here, where the compile recovers and reports it
	}
	if errors.Is(r.err, fs.ErrNotExist) {
		return nil, &Error{
			Kind: KindInvalid, Message: "could not locate module with name: " + namespace,
			Hint: "there is no file " + l.show(m.modelFile(namespace)),
		}
	}
	path := l.show(m.modelFile(namespace))
	if e := systemError(path, r.err, "the model of "+namespace+" must be the file "+path); e != nil {
		return nil, e
	}
	var parse *syntax.Error
	if r.err != nil && !errors.As(r.err, &parse) {
		return nil, &Error{Kind: KindInvalid, Message: "could not read module " + namespace, Cause: r.err}
	}
	return r.file, r.err
}

// read parses a file and begins to read what it imports.
func (l *Loader) read(path, namespace string) (*syntax.File, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	file, err := syntax.Parse(syntax.FileInfo{Path: l.show(path), Namespace: namespace}, text)
	if err != nil {
		return nil, err
	}
	for _, w := range l.imports(file) {
		l.ahead(w.name)
	}
	return file, nil
}

// show returns a path as messages show it: relative if it lies in the project.
func (l *Loader) show(path string) string {
	if rel, err := filepath.Rel(l.project.Dir, path); err == nil && rel != ".." &&
		!strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return rel
	}
	return path
}

// warnings returns what is to be said about a module when it is loaded.
func (m *Module) warnings() []syntax.Warning {
	var list []syntax.Warning
	if m.Deprecated {
		list = append(
			list,
			syntax.Warning{
				Kind:    "inmanta.module.ModuleDeprecationWarning",
				Message: "Module " + m.Name + " has been deprecated",
			},
		)
	}
	if m.Generation == 1 {
		list = append(list, syntax.Warning{
			Kind: "inmanta.warnings.InmantaWarning",
			Message: "Loaded V1 module " + m.Name + ". The use of V1 modules is deprecated. Use the equivalent " +
				"V2 module instead.",
		})
	}
	return list
}
