// Command record compiles the corpus with the reference and with Ordain, shows
// where they differ, worst first, and records what the reference made of it:
//
//	go run ./compiler/internal/parity/record -reference-python …/bin/python -write
//
// Without -write nothing is recorded. The interpreter is one of a virtual
// environment with inmanta-core and, for cases with std, inmanta-module-std.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/internal/parity/oracle"
)

type options struct {
	reference, python string
	site              string
	corpus, stories   string
	only              string
	write, quiet      bool
	recorded          bool
}

func main() {
	var o options
	flag.StringVar(
		&o.reference,
		"reference-python",
		os.Getenv("ORDAIN_REFERENCE_PYTHON"),
		"interpreter that has inmanta-core",
	)
	flag.StringVar(&o.python, "python", "python3", "interpreter for our plug-ins")
	flag.StringVar(
		&o.site,
		"site",
		"",
		"folder of packages for our plug-ins (default: those of -python's virtual environment)",
	)
	flag.StringVar(&o.corpus, "corpus", "compiler/testdata/parity", "folder with the archives")
	flag.StringVar(
		&o.stories,
		"stories",
		"compiler/eval/testdata",
		"folder with stories that are cases too; empty: none",
	)
	flag.StringVar(&o.only, "run", "", "only the cases whose area/name matches")
	flag.BoolVar(&o.write, "write", false, "record the reference's outcomes")
	flag.BoolVar(&o.recorded, "recorded", false, "compare with the recorded outcomes, without the reference")
	flag.BoolVar(&o.quiet, "quiet", false, "show the counts only")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.reference == "" && !o.recorded {
		return fmt.Errorf(
			"name an interpreter that has inmanta-core, with -reference-python or in ORDAIN_REFERENCE_PYTHON",
		)
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	var stories []string
	if o.stories != "" {
		stories = []string{o.stories}
	}
	all, err := parity.Load(o.corpus, stories...)
	if err != nil {
		return err
	}
	var cases []parity.Case
	for _, c := range all {
		if only.MatchString(c.ID()) {
			cases = append(cases, c)
		}
	}
	dir, err := os.MkdirTemp("", "parity-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var want parity.Outcomes
	if o.recorded {
		want, err = parity.LoadOutcomes(filepath.Join(o.corpus, "outcomes"))
	} else {
		want, err = oracle.Compile(ctx, o.reference, cases, filepath.Join(dir, "reference"))
	}
	if err != nil {
		return err
	}
	if err := compare(ctx, o, cases, want, filepath.Join(dir, "ordain")); err != nil {
		return err
	}
	if !o.write {
		return nil
	}
	outcomes := filepath.Join(o.corpus, "outcomes")
	if o.only != "" { // the rest stays
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

// merge adds outcomes to those of the same areas; files of other areas stay as
// they are.
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

// compare compiles all cases with our compiler and prints what differs.
func compare(ctx context.Context, o options, cases []parity.Case, want parity.Outcomes, dir string) error {
	python, err := exec.LookPath(o.python)
	if err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "parity-cache-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	settings := compiler.Options{Python: python, CacheDir: cache, SitePackages: compiler.PackagesOf(python)}
	if o.site != "" {
		settings.SitePackages = strings.Split(o.site, string(os.PathListSeparator))
	}
	found := map[parity.Verdict][]string{}
	counts := map[string]map[parity.Verdict]int{}
	total := map[parity.Verdict]int{}
	for i, c := range cases {
		expected, ok := want[c.ID()]
		if !ok {
			continue
		}
		got, err := parity.Compile(ctx, c, filepath.Join(dir, fmt.Sprint(i)), settings)
		if err != nil {
			return fmt.Errorf("%s: %w", c.ID(), err)
		}
		verdict, why := parity.Compare(expected, got)
		if counts[c.Area] == nil {
			counts[c.Area] = map[parity.Verdict]int{}
		}
		counts[c.Area][verdict]++
		total[verdict]++
		if verdict != parity.Same {
			found[verdict] = append(
				found[verdict],
				fmt.Sprintf("%s %s\n %s\n", strings.ToUpper(string(verdict)), c.ID(), why),
			)
		}
	}
	if !o.quiet {
		for _, v := range parity.Verdicts {
			for _, text := range found[v] {
				fmt.Println(text)
			}
		}
	}
	table(counts, total)
	return nil
}

func table(counts map[string]map[parity.Verdict]int, total map[parity.Verdict]int) {
	fmt.Printf("%-24s", "area")
	for _, v := range parity.Verdicts {
		fmt.Printf(" %8s", v)
	}
	fmt.Println()
	areas := make([]string, 0, len(counts))
	for area := range counts {
		areas = append(areas, area)
	}
	sort.Strings(areas)
	row := func(name string, n map[parity.Verdict]int) {
		fmt.Printf("%-24s", name)
		for _, v := range parity.Verdicts {
			fmt.Printf(" %8d", n[v])
		}
		fmt.Println()
	}
	for _, area := range areas {
		row(area, counts[area])
	}
	row("all", total)
}
