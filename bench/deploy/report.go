package main

import "fmt"

// row is one line of the table: the sorted measurements of each server, in seconds or bytes.
type row struct {
	name    string
	seconds bool
	values  [][]float64 // by server
}

func (b *bench) report() {
	fmt.Print("| measured |")
	for _, s := range b.Servers {
		fmt.Printf(" %s |", s.Name)
	}
	fmt.Print(" ratio |\n| --- |")
	for range b.Servers {
		fmt.Print(" --- |")
	}
	fmt.Println(" --- |")
	for _, r := range b.rows {
		fmt.Printf("| %s |", r.name)
		for i := range b.Servers {
			if i >= len(r.values) {
				fmt.Print(" |")
				continue
			}
			fmt.Printf(" %s |", r.cell(r.values[i]))
		}
		if len(r.values) == 2 {
			fmt.Printf(" **%.1f** |\n", median(r.values[1])/median(r.values[0]))
		} else {
			fmt.Println(" |")
		}
	}
}

func (r row) cell(sorted []float64) string {
	if !r.seconds {
		return fmt.Sprintf("%.0f MiB", median(sorted)/(1<<20))
	}
	return fmt.Sprintf("%.3f s (%.3f to %.3f)", median(sorted), sorted[0], sorted[len(sorted)-1])
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }
