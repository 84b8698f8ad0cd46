package main

import (
	"fmt"
	"io"
	"time"
)

// progress prints the medians of a row for the person who waits.
func (r *row) progress(w io.Writer) {
	ours, _ := r.ordain.wall()
	theirs, _ := r.reference.wall()
	fmt.Fprintf(w, "%s, %s: ordain %s, reference %s\n", r.model.title(), r.what(), seconds(ours), seconds(theirs))
}

func (r *row) what() string {
	if r.export {
		return "with export"
	}
	return "compile"
}

// report prints two tables: time and memory with their ratios, and how the
// cost grows with the size.
func report(w io.Writer, runs int, version string, rows []*row) {
	fmt.Fprintf(
		w,
		"Reference: inmanta-core %s. Wall time and CPU time (user and system, of all processes): median of %d "+
			"(lowest); memory: the sum of the peaks of all processes.\n\n",
		version,
		runs,
	)
	fmt.Fprintln(
		w,
		"| model | | Ordain: wall | CPU | memory | reference: wall | CPU | memory | wall, times faster: medians "+
			"(lowest) | CPU, times less | memory, times less |",
	)
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s |", r.model.title(), r.what(), r.ordain.cells(), r.reference.cells())
		if len(r.reference.runs) == 0 {
			fmt.Fprintln(w, " | | |")
			continue
		}
		median, best := r.ordain.wall()
		theirs, theirBest := r.reference.wall()
		_, cpu := r.ordain.cpu()
		_, theirCPU := r.reference.cpu()
		fmt.Fprintf(w, " **%.1f** (%.1f) | %.1f | %.1f |\n", ratio(theirs, median), ratio(theirBest, best),
			ratio(theirCPU, cpu), float64(r.reference.peak)/float64(r.ordain.peak))
	}
	fmt.Fprintln(w,
		"\n| Ordain, per resource beyond std only | | wall | CPU | memory |\n| --- | --- | --- | --- | --- |")
	base := map[bool]*row{}
	for _, r := range rows {
		if r.model.resources == 0 {
			base[r.export] = r
			continue
		}
		from := base[r.export]
		if from == nil {
			continue
		}
		n := time.Duration(r.model.resources)
		_, wall := r.ordain.wall()
		_, fromWall := from.ordain.wall()
		_, cpu := r.ordain.cpu()
		_, fromCPU := from.ordain.cpu()
		memory := float64(r.ordain.peak-from.ordain.peak) / 1024 / float64(n)
		fmt.Fprintf(w, "| %s | %s | %.1f µs | %.1f µs | %.1f KiB |\n", r.model.title(), r.what(),
			micros((wall-fromWall)/n), micros((cpu-fromCPU)/n), memory)
	}
}

// cells are the columns of one compiler.
func (f figures) cells() string {
	if len(f.runs) == 0 {
		return "– | – | –"
	}
	wall, bestWall := f.wall()
	cpu, bestCPU := f.cpu()
	return fmt.Sprintf("%s (%s) | %s (%s) | %d MiB", seconds(wall), seconds(bestWall), seconds(cpu), seconds(bestCPU),
		f.peak>>20)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func ratio(theirs, ours time.Duration) float64 { return float64(theirs) / float64(ours) }
