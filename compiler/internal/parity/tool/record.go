package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// recorder compares the cases of a corpus.
type recorder struct {
	interpreters
	corpus, stories string
	only            string
	write, quiet    bool
	recorded        bool
}

// record compiles the corpus with the reference and with Ordain, shows where they
// differ, worst first, and with -write records what the reference made of it.
func record(ctx context.Context, args []string) error {
	var r recorder
	f := flag.NewFlagSet("record", flag.ExitOnError)
	r.flags(f)
	f.StringVar(&r.corpus, "corpus", "compiler/testdata/parity", "folder with the archives")
	f.StringVar(&r.stories, "stories", "compiler/eval/testdata", "folder with stories that are cases too; empty: none")
	f.StringVar(&r.only, "run", "", "only the cases whose area/name matches")
	f.BoolVar(&r.write, "write", false, "record the reference's outcomes")
	f.BoolVar(&r.recorded, "recorded", false, "compare with the recorded outcomes, without the reference")
	f.BoolVar(&r.quiet, "quiet", false, "show the counts only")
	_ = f.Parse(args) // it exits on an error
	if r.recorded {
		r.reference = "python3" // for our own plug-ins only
	}
	if err := r.find(ctx); err != nil {
		return err
	}
	return r.run(ctx)
}

func (r *recorder) run(ctx context.Context) error {
	cases, err := r.cases()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "parity-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	outcomes := filepath.Join(r.corpus, "outcomes")
	var want parity.Outcomes
	if r.recorded {
		want, err = parity.LoadOutcomes(outcomes)
	} else {
		want, err = parity.CompileWithReference(ctx, r.reference, cases, filepath.Join(dir, "reference"))
	}
	if err != nil {
		return err
	}
	if err := r.compare(ctx, cases, want, dir); err != nil {
		return err
	}
	if !r.write || r.recorded {
		return nil
	}
	if r.only != "" { // the outcomes of other cases stay
		old, err := parity.LoadOutcomes(outcomes)
		if err != nil {
			return err
		}
		want = merge(old, want)
	} else if err := os.RemoveAll(outcomes); err != nil {
		return err
	}
	return parity.WriteOutcomes(outcomes, want)
}

// cases loads those that -run selects.
func (r *recorder) cases() ([]parity.Case, error) {
	only, err := regexp.Compile(r.only)
	if err != nil {
		return nil, err
	}
	var stories []string
	if r.stories != "" {
		stories = []string{r.stories}
	}
	all, err := parity.Load(r.corpus, stories...)
	return slices.DeleteFunc(all, func(c parity.Case) bool { return !only.MatchString(c.ID()) }), err
}

// merge returns the outcomes of the areas of found: the old ones, replaced where found
// has a new one. The files of other areas are not written again.
func merge(old, found parity.Outcomes) parity.Outcomes {
	areas := map[string]bool{}
	for id := range found {
		areas[path.Dir(id)] = true
	}
	all := parity.Outcomes{}
	for id, d := range old {
		if areas[path.Dir(id)] {
			all[id] = d
		}
	}
	maps.Copy(all, found)
	return all
}

// counts are numbers of cases by verdict.
type counts map[parity.Verdict]int

// compare compiles all cases with our compiler and prints what differs, and a table.
func (r *recorder) compare(ctx context.Context, cases []parity.Case, want parity.Outcomes, dir string) error {
	options := r.options(filepath.Join(dir, "cache"))
	differences := map[parity.Verdict][]string{}
	areas, total := map[string]counts{}, counts{}
	for i, c := range cases {
		expected, ok := want[c.ID()]
		if !ok {
			continue
		}
		got, err := parity.Compile(ctx, c, filepath.Join(dir, "ordain", fmt.Sprint(i)), options)
		if err != nil {
			return fmt.Errorf("%s: %w", c.ID(), err)
		}
		verdict, why := parity.Compare(expected, got)
		if areas[c.Area] == nil {
			areas[c.Area] = counts{}
		}
		areas[c.Area][verdict]++
		total[verdict]++
		if verdict != parity.Same {
			text := fmt.Sprintf("%s %s\n %s\n", strings.ToUpper(string(verdict)), c.ID(), why)
			differences[verdict] = append(differences[verdict], text)
		}
	}
	if !r.quiet {
		for _, v := range parity.Verdicts {
			for _, text := range differences[v] {
				fmt.Println(text)
			}
		}
	}
	printTable(areas, total)
	return nil
}

func printTable(areas map[string]counts, total counts) {
	fmt.Printf("%-24s", "area")
	for _, v := range parity.Verdicts {
		fmt.Printf(" %8s", v)
	}
	fmt.Println()
	row := func(name string, n counts) {
		fmt.Printf("%-24s", name)
		for _, v := range parity.Verdicts {
			fmt.Printf(" %8d", n[v])
		}
		fmt.Println()
	}
	for _, area := range slices.Sorted(maps.Keys(areas)) {
		row(area, areas[area])
	}
	row("all", total)
}
