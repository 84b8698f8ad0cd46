// Command compile measures both compilers side by side on generated models:
// whole processes, taking turns, after one run of each to warm up. It prints
// the tables that docs/benchmarks.md holds.
//
//	go run ./bench/compile
//
// The models have one of these shapes (-shapes):
//
//	services  implementations refine services into ten resources each, with
//	          inheritance, relations both ways, index lookups, loops, conditions and
//	          interpolation, from a module with resource classes
//	plugins   the same, with one call of a plug-in for each service
//	wide      a few instances have relations to thousands of others
//	deep      a chain of thirty parents, with attributes, defaults and
//	          implementations at many levels
//
// Both compilers work in the same folder with the same virtual environment and
// may use their caches.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"ordain.dev/ordain/bench/peer"
)

type options struct {
	sizes     string
	runs      int
	largest   int
	shapes    string
	python    string
	reference string
	binary    string
	alone     bool
	keep      bool
}

func main() {
	var o options
	flag.StringVar(&o.sizes, "sizes", "0,1000,10000,100000", "numbers of resources")
	flag.IntVar(&o.runs, "runs", 5, "counted runs of each compiler on each model")
	flag.IntVar(&o.largest, "reference-max", 10_000, "largest model that the reference compiles too")
	flag.StringVar(&o.shapes, "shapes", "services,plugins,wide,deep", "shapes of the models")
	flag.StringVar(&o.python, "python", "python3.13", "interpreter to install the reference with")
	flag.StringVar(&o.reference, "reference-python", "",
		"interpreter of a virtual environment that has inmanta-core and inmanta-module-std; empty: they are installed")
	flag.StringVar(&o.binary, "binary", "", "ordain to measure; empty: built from this checkout")
	flag.BoolVar(&o.alone, "alone", false, "measure Ordain only")
	flag.BoolVar(&o.keep, "keep", false, "keep the working directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "compile:", err)
		os.Exit(1)
	}
}

// bench is the state that all measurements share.
type bench struct {
	options
	dir     string
	version string // of the reference
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "ordain-bench-")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(os.Stderr, "working in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	b := &bench{options: o, dir: dir}
	if b.binary == "" {
		if b.binary, err = peer.Build(ctx, dir); err != nil {
			return err
		}
	}
	if err := b.findReference(ctx); err != nil {
		return err
	}
	var rows []*row
	defer func() { report(os.Stdout, o.runs, b.version, rows) }() // what was measured so far
	chosen, err := shapesNamed(o.shapes)
	if err != nil {
		return err
	}
	for size := range strings.SplitSeq(o.sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return fmt.Errorf("-sizes: %w", err)
		}
		for k, shape := range chosen {
			if n == 0 && k > 0 {
				break // an empty project has no shape
			}
			m := model{shape: shape, resources: n, dir: filepath.Join(dir, fmt.Sprintf("%s-%d", shape.name, n))}
			measured, err := b.measure(ctx, m)
			rows = append(rows, measured...)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// findReference installs the reference unless an interpreter with it was
// named, and asks for its version.
func (b *bench) findReference(ctx context.Context) error {
	if b.reference == "" {
		reference := peer.Reference{Python: b.python, Dir: filepath.Join(b.dir, "reference")}
		version, err := reference.Install(ctx)
		b.version, b.reference = version, filepath.Join(reference.Dir, "venv", "bin", "python")
		return err
	}
	const ask = "from importlib.metadata import version; print(version('inmanta-core'))"
	out, err := exec.CommandContext(ctx, b.reference, "-c", ask).Output()
	b.version = strings.TrimSpace(string(out))
	return err
}

// row is one line of the table: a model, compiled only or exported too.
type row struct {
	model             model
	export            bool
	ordain, reference figures
}

// measure measures both compilers on a model, with and without the export.
func (b *bench) measure(ctx context.Context, m model) ([]*row, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	venv := filepath.Dir(filepath.Dir(b.reference))
	if err := os.Symlink(venv, filepath.Join(m.dir, ".env")); err != nil {
		return nil, err
	}
	both := !b.alone && m.resources <= b.largest
	if err := b.agree(ctx, m, both); err != nil {
		return nil, err
	}
	var rows []*row
	for _, export := range []bool{false, true} {
		r := &row{model: m, export: export}
		ours, theirs := b.ordain(m, export), b.theirs(m, export)
		for i := range b.runs + 1 {
			if err := r.ordain.add(ctx, ours, i > 0); err != nil {
				return rows, err
			}
			if both {
				if err := r.reference.add(ctx, theirs, i > 0); err != nil {
					return rows, err
				}
			}
		}
		var err error
		if r.ordain.peak, err = ours.memory(ctx); err != nil {
			return rows, err
		}
		if both {
			if r.reference.peak, err = theirs.memory(ctx); err != nil {
				return rows, err
			}
		}
		rows = append(rows, r)
		r.progress(os.Stderr)
	}
	return rows, nil
}

// add runs the command once more.
func (f *figures) add(ctx context.Context, c command, counted bool) error {
	took, err := c.time(ctx)
	if err == nil && counted {
		f.runs = append(f.runs, took)
	}
	return err
}

// ordain is the command that compiles with Ordain. It writes what the reference
// writes too: nothing, or the resources of an export.
func (b *bench) ordain(m model, export bool) command {
	args := []string{b.binary, "compile", "--project", m.dir, "--cache-dir", filepath.Join(b.dir, "cache")}
	if export {
		args = append(args, "--export", "--resources-json", m.exported("ordain"))
	}
	return command{dir: m.dir, args: args}
}

// exported is where a compiler writes the resources.
func (m model) exported(by string) string { return filepath.Join(m.dir, by+".json") }

func (b *bench) theirs(m model, export bool) command {
	inmanta := filepath.Join(filepath.Dir(b.reference), "inmanta")
	if export {
		return command{dir: m.dir, args: []string{inmanta, "export", "-j", m.exported("reference")}}
	}
	return command{dir: m.dir, args: []string{inmanta, "compile"}}
}

// counting is a program that compiles the current folder with the reference and
// prints the number of instances.
const counting = `
import os
from inmanta import compiler, module
from inmanta.ast.entity import Entity
module.Project.set(module.Project(os.getcwd()))
types, _ = compiler.do_compile()
entities = {id(t): t for t in types.values() if isinstance(t, Entity)}.values()
print(sum(1 for e in entities for i in e.get_all_instances() if i.type is e))
`

// agree compiles the model with both compilers. It compares the numbers of
// instances and resources with those that the generator intends, and the resources
// of both compilers with each other.
func (b *bench) agree(ctx context.Context, m model, both bool) error {
	ours := b.ordain(m, true)
	written := filepath.Join(m.dir, "model.json")
	ours.args = append(ours.args, "--model-json", written)
	if _, err := ours.time(ctx); err != nil {
		return err
	}
	var made struct {
		Instances []json.RawMessage `json:"instances"`
	}
	if err := readJSON(written, &made); err != nil {
		return err
	}
	resources, err := m.resourcesOf("ordain")
	if err != nil {
		return err
	}
	if len(made.Instances) < m.made() || len(resources) != m.resources { // std has some instances of its own
		return fmt.Errorf("%s: Ordain makes %d instances and %d resources, not %d and %d", m.title(),
			len(made.Instances), len(resources), m.made(), m.resources)
	}
	if !both {
		return nil
	}
	cmd := exec.CommandContext(ctx, b.reference, "-c", counting)
	cmd.Dir, cmd.Stderr = m.dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: the reference: %w", m.title(), err)
	}
	if got := strings.TrimSpace(string(out)); got != strconv.Itoa(len(made.Instances)) {
		return fmt.Errorf("%s: the reference makes %s instances, Ordain %d", m.title(), got, len(made.Instances))
	}
	if _, err := b.theirs(m, true).time(ctx); err != nil {
		return err
	}
	theirs, err := m.resourcesOf("reference")
	if err != nil {
		return err
	}
	for id, one := range theirs {
		if !reflect.DeepEqual(one, resources[id]) {
			return fmt.Errorf("%s: the reference exports %v, Ordain %v", m.title(), one, resources[id])
		}
	}
	if len(theirs) != len(resources) {
		return fmt.Errorf("%s: the reference exports %d resources, Ordain %d", m.title(), len(theirs), len(resources))
	}
	return nil
}

// resourcesOf reads what a compiler exported, by id. What a resource requires is
// compared as a set.
func (m model) resourcesOf(compiler string) (map[string]map[string]any, error) {
	var list []map[string]any
	if err := readJSON(m.exported(compiler), &list); err != nil {
		return nil, err
	}
	byID := map[string]map[string]any{}
	for _, one := range list {
		required := map[any]bool{}
		for _, id := range one["requires"].([]any) {
			required[id] = true
		}
		one["requires"] = required
		byID[fmt.Sprint(one["id"])] = one
	}
	return byID, nil
}

func readJSON(file string, into any) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
