package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"
	"syscall"

	"ordain.dev/ordain/compiler"
)

func main() {
	dir := flag.String("dir", "", "")
	n := flag.Int("n", 20, "")
	exp := flag.Bool("export", false, "")
	cache := flag.String("cache", "", "")
	cpu := flag.String("cpu", "", "")
	mem := flag.String("mem", "", "")
	heap := flag.String("heap", "", "")
	flag.Parse()
	debug.SetGCPercent(1200)
	if *mem != "" || *heap != "" { runtime.MemProfileRate = 512 }
	var out *compiler.Outcome
	one := func() {
		out = compiler.Run(context.Background(), compiler.Options{Project: *dir, Export: *exp, CacheDir: *cache, SitePackages: []string{"/tmp/ref/v313/lib/python3.13/site-packages"}, Python: "/tmp/ref/v313/bin/python", NoProvenance: true})
		if !out.Document.Success { fmt.Println(out.Text); os.Exit(1) }
		d := out.ModelDocument()
		d.Write(io.Discard)
	}
	one()
	if *cpu != "" { f, _ := os.Create(*cpu); pprof.StartCPUProfile(f) }
	var r0, r1 syscall.Rusage
	syscall.Getrusage(0, &r0)
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	t := time.Now()
	best := time.Hour
	for i := 0; i < *n; i++ { t1 := time.Now(); one(); if d := time.Since(t1); d < best { best = d } }
	el := time.Since(t)
	syscall.Getrusage(0, &r1)
	runtime.ReadMemStats(&m1)
	if *cpu != "" { pprof.StopCPUProfile() }
	if *mem != "" { runtime.GC(); runtime.GC(); f, _ := os.Create(*mem); pprof.Lookup("allocs").WriteTo(f, 0); f.Close() }
	runtime.GC()
	if *heap != "" { f, _ := os.Create(*heap); pprof.Lookup("heap").WriteTo(f, 0); f.Close() }
	if *n > 0 {
	cpuT := time.Duration(r1.Utime.Nano()+r1.Stime.Nano()-r0.Utime.Nano()-r0.Stime.Nano())
	fmt.Println("wall", el/time.Duration(*n), "min", best, "cpu", cpuT/time.Duration(*n), "alloc MiB", float64(m1.TotalAlloc-m0.TotalAlloc)/float64(*n)/(1<<20), "mallocs", (m1.Mallocs-m0.Mallocs)/uint64(*n))
	}
	var m2 runtime.MemStats
	runtime.ReadMemStats(&m2)
	fmt.Println("live MiB", m2.HeapAlloc>>20)
	for _, s := range out.Document.Stages { fmt.Print(s.Name, " ", s.Milliseconds, "  ") }
	fmt.Println()
	runtime.KeepAlive(out)
}
