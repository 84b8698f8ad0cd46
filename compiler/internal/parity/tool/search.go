package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/internal/parity/generate"
)

// search generates models of one family, compiles each with the reference and with ours,
// and shows where they differ, each model cut down to what is needed to see it.
func search(ctx context.Context, args []string) error {
	s := searcher{counts: counts{}}
	f := flag.NewFlagSet("search", flag.ExitOnError)
	s.flags(f)
	family := f.String("family", "careful", "which models to make, one of "+strings.Join(generate.Families(), ", "))
	corpus := f.String("corpus", "compiler/testdata/parity", "folder of the corpus that mutants and crosses begin with")
	f.Uint64Var(&s.seed, "seed", 1, "the first seed")
	f.IntVar(&s.n, "n", 200, "how many models")
	f.StringVar(&s.keep, "keep", "", "folder for the models that differ, cut down")
	f.BoolVar(&s.errors, "errors", false, "show other errors of failing models too")
	f.BoolVar(&s.whole, "whole", false, "show models as they are, not cut down")
	_ = f.Parse(args) // it exits on an error
	if err := s.find(ctx); err != nil {
		return err
	}
	if err := s.choose(*family, *corpus); err != nil {
		return err
	}
	return s.run(ctx)
}

// searcher looks for models that the two compilers see differently.
//
// A model that fails in the reference is compared by the kind and the line of its error
// too. The language does not say which of several errors comes first, so such a
// difference is worth a look, but it is not a fault.
type searcher struct {
	interpreters
	seed          uint64
	n             int
	model         func(seed uint64) parity.Case
	keep          string
	errors, whole bool

	compilerOptions compiler.Options
	dir             string
	counts          counts
	models          int
	compiled        int // by the reference
}

// errDiffers is the result of a search that found a serious difference.
var errDiffers = errors.New("the two compilers differ")

func (s *searcher) choose(family, corpus string) error {
	cases, err := parity.Load(corpus)
	if err != nil {
		return err
	}
	s.model, err = generate.Family(family, cases)
	return err
}

func (s *searcher) run(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "parity-search-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	s.compilerOptions = s.options(filepath.Join(s.dir, "cache"))
	s.compilerOptions.MemoryMax = 4 << 30 // for models that never end
	const batch = 50                      // differences are shown after so many models
	for first := 0; first < s.n; first += batch {
		var cases []parity.Case
		for i := first; i < min(first+batch, s.n); i++ {
			cases = append(cases, s.model(s.seed+uint64(i)))
		}
		if err := s.show(ctx, cases); err != nil {
			return err
		}
	}
	fmt.Printf("%d models, %d of which the reference compiles:", s.models, s.compiled)
	for _, v := range parity.Verdicts {
		if s.counts[v] > 0 {
			fmt.Printf(" %d %s", s.counts[v], v)
		}
	}
	fmt.Println()
	if slices.ContainsFunc(serious, func(v parity.Verdict) bool { return s.counts[v] > 0 }) {
		return errDiffers
	}
	return nil
}

// show compares some cases and prints what differs.
func (s *searcher) show(ctx context.Context, cases []parity.Case) error {
	comparisons, err := s.compare(ctx, cases)
	if err != nil {
		return err
	}
	for _, c := range cases {
		found, ok := comparisons[c.ID()]
		if !ok {
			continue
		}
		if found.serious() { // the reference iterates over sets at times: its answer may change
			repeated, err := s.compare(ctx, []parity.Case{c})
			if err != nil {
				return err
			}
			if found, ok = repeated[c.ID()]; !ok {
				continue
			}
			if !found.serious() {
				fmt.Printf("UNDECIDED %s: the reference does not always answer the same\n", c.ID())
			}
		}
		s.models++
		s.counts[found.verdict]++
		if found.compiles {
			s.compiled++
		}
		if found.verdict == parity.Same || (!found.serious() && !s.errors) {
			continue
		}
		if err := s.print(ctx, c, found); err != nil {
			return err
		}
	}
	return nil
}

// print shows a case that differs, cut down unless it is wanted whole.
func (s *searcher) print(ctx context.Context, c parity.Case, found comparison) (err error) {
	if !s.whole {
		if found, c, err = s.reduce(ctx, c, found); err != nil {
			return err
		}
	}
	fmt.Printf("%s %s\n%s\n%s\n", strings.ToUpper(string(found.verdict)), c.ID(), found.why, archive(c))
	if s.keep == "" {
		return nil
	}
	return c.Write(filepath.Join(s.keep, c.Name))
}

// comparison is what became of one case.
type comparison struct {
	verdict  parity.Verdict
	why      string
	compiles bool // with the reference
}

// serious are the differences that no freedom of the language explains.
var serious = []parity.Verdict{parity.Refused, parity.Accepted, parity.Model}

func (c comparison) serious() bool { return slices.Contains(serious, c.verdict) }

// compare compiles cases with both compilers.
func (s *searcher) compare(ctx context.Context, cases []parity.Case) (map[string]comparison, error) {
	wanted, err := parity.CompileWithReference(ctx, s.reference, cases, filepath.Join(s.dir, "reference"))
	if err != nil {
		return nil, err
	}
	out := map[string]comparison{}
	for _, c := range cases {
		want, ok := wanted[c.ID()]
		if !ok {
			continue
		}
		got, err := s.compile(ctx, c)
		if err != nil {
			return nil, err
		}
		found := comparison{compiles: want.Success}
		found.verdict, found.why = parity.Compare(want, got)
		out[c.ID()] = found
	}
	return out, nil
}

// compile compiles a case with our compiler, which may take as long as the reference.
func (s *searcher) compile(ctx context.Context, c parity.Case) (*parity.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dir := filepath.Join(s.dir, "ordain")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return parity.Compile(ctx, c, dir, s.compilerOptions)
}
