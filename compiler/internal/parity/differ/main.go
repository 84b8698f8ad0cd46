// Command differ is the differential fuzzer: it generates models, compiles each
// with the reference and with ours, and shows where they differ, each model cut
// down to what is needed to see it:
//
//	go run ./compiler/internal/parity/differ -reference-python …/bin/python -seed 1 -n 500
//
// A model that fails in the reference is compared by kind and line too; which
// of several errors comes first is left open by the language, so that a
// difference there is worth a look and no more.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/internal/parity/generate"
	"ordain.dev/ordain/compiler/internal/parity/oracle"
)

type differ struct {
	python   string
	seed     uint64
	n        int
	keep     string
	errors   bool
	dir      string
	counts   map[parity.Verdict]int
	compiled int
}

func main() {
	d := differ{counts: map[parity.Verdict]int{}}
	flag.StringVar(&d.python, "reference-python", os.Getenv("ORDAIN_REFERENCE_PYTHON"), "interpreter that has inmanta-core")
	flag.Uint64Var(&d.seed, "seed", 1, "the first seed")
	flag.IntVar(&d.n, "n", 200, "how many models")
	flag.StringVar(&d.keep, "keep", "", "folder for the models that differ, cut down")
	flag.BoolVar(&d.errors, "errors", false, "show other errors of failing models too")
	flag.Parse()
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
		return fmt.Errorf("name an interpreter that has inmanta-core, with -reference-python or in ORDAIN_REFERENCE_PYTHON")
	}
	if d.dir, err = os.MkdirTemp("", "differ-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.dir)
	var cases []parity.Case
	for i := range d.n {
		cases = append(cases, generate.Case(d.seed+uint64(i)))
	}
	verdicts, err := d.compare(ctx, cases)
	if err != nil {
		return err
	}
	for _, c := range cases {
		v, ok := verdicts[c.ID()]
		if !ok {
			continue
		}
		d.counts[v.verdict]++
		if v.compiles {
			d.compiled++
		}
		if v.verdict == parity.Same || (!v.serious() && !d.errors) {
			continue
		}
		if v, c, err = d.reduce(ctx, c, v); err != nil {
			return err
		}
		fmt.Printf("%s %s\n%s\n%s\n", strings.ToUpper(string(v.verdict)), c.ID(), v.why, c.Files["main.cf"])
		if d.keep != "" {
			if err := os.WriteFile(filepath.Join(d.keep, c.Name+".cf"), []byte(c.Files["main.cf"]), 0o644); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%d models, %d of which the reference compiles:", len(verdicts), d.compiled)
	for _, v := range parity.Verdicts {
		if d.counts[v] > 0 {
			fmt.Printf(" %d %s", d.counts[v], v)
		}
	}
	fmt.Println()
	return nil
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
		got, err := parity.Compile(ctx, c, filepath.Join(d.dir, "ordain"), compiler.Options{CacheDir: filepath.Join(d.dir, "cache")})
		if err != nil {
			return nil, err
		}
		v := verdict{compiles: want.Success}
		v.verdict, v.why = parity.Compare(want, got)
		out[c.ID()] = v
	}
	return out, nil
}

// reduce leaves out parts of a model as long as the difference stays.
func (d *differ) reduce(ctx context.Context, c parity.Case, v verdict) (verdict, parity.Case, error) {
	for size := 8; size > 0; {
		parts := split(c.Files["main.cf"])
		var tries []parity.Case
		for i := 0; i < len(parts); i += size {
			rest := append(append([]string(nil), parts[:i]...), parts[min(i+size, len(parts)):]...)
			tries = append(tries, parity.Case{
				Area: "reduced", Name: fmt.Sprint(i), Files: map[string]string{"main.cf": strings.Join(rest, "\n") + "\n"},
			})
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

// split cuts a model into its top-level statements: lines up to one that is not
// indented and does not go on with a block.
func split(model string) []string {
	var parts []string
	for line := range strings.Lines(model) {
		line = strings.TrimRight(line, "\n")
		first, _, _ := strings.Cut(line, " ")
		goesOn := strings.HasPrefix(line, " ") || line == "end" || first == "elif" || first == "else:"
		if goesOn && len(parts) > 0 {
			parts[len(parts)-1] += "\n" + line
			continue
		}
		parts = append(parts, line)
	}
	return parts
}
