package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"ordain.dev/ordain/compiler/internal/parity/generate"
)

// nightly generates models of every family from fixed seeds and compares both compilers on
// them. It takes the place of generated models that would be kept in the corpus: the same
// seeds make the same models every night. What it finds goes into the corpus, cut down.
func nightly(ctx context.Context, args []string) error {
	var i interpreters
	f := flag.NewFlagSet("nightly", flag.ExitOnError)
	i.flags(f)
	n := f.Int("n", 500, "how many models of each family")
	seed := f.Uint64("seed", 1, "the first seed")
	keep := f.String("keep", "", "folder for the models that differ, cut down")
	corpus := f.String("corpus", "compiler/testdata/parity", "folder of the corpus that mutants and crosses begin with")
	_ = f.Parse(args) // it exits on an error
	if err := i.find(ctx); err != nil {
		return err
	}
	var failed error
	for _, family := range generate.Families() {
		fmt.Printf("== %s\n", family)
		s := searcher{interpreters: i, seed: *seed, n: *n, keep: *keep, counts: counts{}}
		if err := s.choose(family, *corpus); err != nil {
			return err
		}
		if err := s.run(ctx); errors.Is(err, errDiffers) {
			failed = err
		} else if err != nil {
			return err
		}
	}
	return failed
}
