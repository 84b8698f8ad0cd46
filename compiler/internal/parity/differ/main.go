// Command differ is the differential fuzzer: it generates models, compiles each
// with the reference and with ours, and shows where they differ, each model cut
// down to what is needed to see it:
//
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -seed 1 -n 500
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -feeds -n 500
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -heirs -n 500
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -wild -n 500
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -places -n 500
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -turns -n 500
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -cross -n 500
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -mutate -n 500
//
// The second makes models of loops and lists that feed relations, where the order of
// freezing matters; the third is about inheriting, the fourth mixes all features
// without care; the fifth puts every kind of expression at every place, in each other, and the
// sixth lets such models print in which order they ran; the seventh joins two models of the corpus; the last changes something small in one, and compares mostly errors.
//
// A model that fails in the reference is compared by kind and line too; which
// of several errors comes first is left open by the language, so that a
// difference there is worth a look and no more.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/internal/parity/generate"
	"ordain.dev/ordain/compiler/internal/parity/oracle"
)

type differ struct {
	python   string
	seed     uint64
	n        int
	model    func(seed uint64) parity.Case
	keep     string
	errors   bool
	whole    bool
	options  compiler.Options
	dir      string
	counts   map[parity.Verdict]int
	models   int
	compiled int
}

func main() {
	d := differ{counts: map[parity.Verdict]int{}}
	flag.StringVar(
		&d.python,
		"reference-python",
		os.Getenv("ORDAIN_REFERENCE_PYTHON"),
		"interpreter that has inmanta-core",
	)
	python := flag.String("python", "python3", "interpreter for our plug-ins")
	flag.Uint64Var(&d.seed, "seed", 1, "the first seed")
	flag.IntVar(&d.n, "n", 200, "how many models")
	flag.StringVar(&d.keep, "keep", "", "folder for the models that differ, cut down")
	flag.BoolVar(&d.errors, "errors", false, "show other errors of failing models too")
	flag.BoolVar(&d.whole, "whole", false, "show models as they are, not cut down")
	mutate := flag.Bool("mutate", false, "change models of the corpus instead of making new ones")
	crossed := flag.Bool("cross", false, "join two models of the corpus each")
	feeds := flag.Bool("feeds", false, "make models of loops and lists that feed relations")
	heirs := flag.Bool("heirs", false, "make models of entities that inherit in all ways")
	wild := flag.Bool("wild", false, "make models of all features, whether they compile or not")
	places := flag.Bool("places", false, "make models of expressions of every kind at every place")
	turns := flag.Bool("turns", false, "make such models that print in which order they ran")
	corpus := flag.String("corpus", "compiler/testdata/parity", "folder of the corpus to change or join models of")
	flag.Parse()
	d.model = generate.Case
	switch {
	case *feeds:
		d.model = generate.Feeds
	case *heirs:
		d.model = generate.Heirs
	case *wild:
		d.model = generate.Wild
	case *places:
		d.model = generate.Places
	case *turns:
		d.model = generate.Turns
	case *mutate, *crossed:
		cases, err := parity.Load(*corpus)
		if err != nil {
			fmt.Fprintln(os.Stderr, "differ:", err)
			os.Exit(2)
		}
		if d.model = generate.Crosses(cases); *mutate {
			d.model = generate.Mutants(cases)
		}
	}
	d.options.Python, d.options.MemoryMax = *python, 4<<30 // for models that have no end
	if err := d.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "differ:", err)
		os.Exit(2)
	}
	for _, v := range []parity.Verdict{parity.Refused, parity.Accepted, parity.Model} {
		if d.counts[v] > 0 {
			os.Exit(1)
		}
	}
}

func (d *differ) run(ctx context.Context) (err error) {
	if d.python == "" {
		return fmt.Errorf(
			"name an interpreter that has inmanta-core, with -reference-python or in ORDAIN_REFERENCE_PYTHON",
		)
	}
	if d.dir, err = os.MkdirTemp("", "differ-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.dir)
	if d.options.Python, err = exec.LookPath(d.options.Python); err != nil {
		return err
	}
	d.options.CacheDir, d.options.SitePackages = filepath.Join(d.dir, "cache"), compiler.PackagesOf(d.options.Python)
	for first := 0; first < d.n; first += batch {
		var cases []parity.Case
		for i := first; i < min(first+batch, d.n); i++ {
			cases = append(cases, d.model(d.seed+uint64(i)))
		}
		if err := d.show(ctx, cases); err != nil {
			return err
		}
	}
	fmt.Printf("%d models, %d of which the reference compiles:", d.models, d.compiled)
	for _, v := range parity.Verdicts {
		if d.counts[v] > 0 {
			fmt.Printf(" %d %s", d.counts[v], v)
		}
	}
	fmt.Println()
	return nil
}

// batch is how many models are compared before differences are shown.
const batch = 50

// show compares some cases and prints what differs.
func (d *differ) show(ctx context.Context, cases []parity.Case) error {
	verdicts, err := d.compare(ctx, cases)
	if err != nil {
		return err
	}
	for _, c := range cases {
		v, ok := verdicts[c.ID()]
		if !ok {
			continue
		}
		if v.serious() { // the reference follows the order of sets at times: it may say otherwise now
			again, err := d.compare(ctx, []parity.Case{c})
			if err != nil {
				return err
			}
			if v, ok = again[c.ID()]; !ok {
				continue
			}
			if !v.serious() {
				fmt.Printf("UNDECIDED %s: the reference makes this or that of it\n", c.ID())
			}
		}
		d.models++
		d.counts[v.verdict]++
		if v.compiles {
			d.compiled++
		}
		if v.verdict == parity.Same || (!v.serious() && !d.errors) {
			continue
		}
		if err := d.print(ctx, c, v); err != nil {
			return err
		}
	}
	return nil
}

// print shows a case that differs, cut down unless it is wanted whole.
func (d *differ) print(ctx context.Context, c parity.Case, v verdict) (err error) {
	if !d.whole {
		if v, c, err = d.reduce(ctx, c, v); err != nil {
			return err
		}
	}
	fmt.Printf("%s %s\n%s\n%s\n", strings.ToUpper(string(v.verdict)), c.ID(), v.why, archive(c))
	if d.keep == "" {
		return nil
	}
	return c.Write(filepath.Join(d.keep, c.Name))
}

type verdict struct {
	verdict  parity.Verdict
	why      string
	compiles bool // with the reference
}

// serious are differences that no freedom of the language explains.
func (v verdict) serious() bool {
	return v.verdict == parity.Refused || v.verdict == parity.Accepted || v.verdict == parity.Model
}

// compare compiles cases with both.
func (d *differ) compare(ctx context.Context, cases []parity.Case) (map[string]verdict, error) {
	wanted, err := oracle.Compile(ctx, d.python, cases, filepath.Join(d.dir, "reference"))
	if err != nil {
		return nil, err
	}
	out := map[string]verdict{}
	for _, c := range cases {
		want, ok := wanted[c.ID()]
		if !ok {
			continue
		}
		dir := filepath.Join(d.dir, "ordain")
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		got, err := d.ours(ctx, c, dir)
		if err != nil {
			return nil, err
		}
		v := verdict{compiles: want.Success}
		v.verdict, v.why = parity.Compare(want, got)
		out[c.ID()] = v
	}
	return out, nil
}

// ours compiles a case with our compiler, which may take as long as the reference.
func (d *differ) ours(ctx context.Context, c parity.Case, dir string) (*parity.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return parity.Compile(ctx, c, dir, d.options)
}

// reduce leaves out parts of the files of a model as long as the difference stays.
func (d *differ) reduce(ctx context.Context, c parity.Case, v verdict) (verdict, parity.Case, error) {
	for size := 8; size > 0; {
		var tries []parity.Case
		for _, path := range slices.Sorted(maps.Keys(c.Files)) {
			for _, text := range without(path, c.Files[path], size) {
				files := maps.Clone(c.Files)
				files[path] = text
				tries = append(
					tries,
					parity.Case{Area: "reduced", Name: fmt.Sprint(len(tries)), Files: files, Export: c.Export},
				)
			}
		}
		found, err := d.compare(ctx, tries)
		if err != nil {
			return v, c, err
		}
		smaller := false
		for _, try := range tries {
			if f, ok := found[try.ID()]; ok && f.verdict == v.verdict {
				c.Files, v, smaller = try.Files, f, true
				break
			}
		}
		if !smaller {
			size /= 2
		}
	}
	return v, c, nil
}

// without gives the texts of a file with some of its parts left out.
func without(path, text string, size int) []string {
	var parts []string
	end := "\n"
	switch filepath.Ext(path) {
	case ".cf":
		parts = generate.Statements(text)
	case ".py":
		parts, end = strings.Split(strings.TrimSpace(text), "\n\n\n"), "\n\n\n"
	}
	var texts []string
	for i := 0; i < len(parts); i += size {
		rest := append(append([]string(nil), parts[:i]...), parts[min(i+size, len(parts)):]...)
		texts = append(texts, strings.Join(rest, end)+"\n")
	}
	return texts
}

// archive is the case as it can be put into the corpus.
func archive(c parity.Case) string {
	a := &txtar.Archive{}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		a.Files = append(a.Files, txtar.File{Name: c.Name + "/" + path, Data: []byte(c.Files[path])})
	}
	return string(txtar.Format(a))
}
