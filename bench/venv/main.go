// Command venv measures how long an executor's virtual environment takes: the
// first one, with an empty cache, and further ones with the same wheels.
//
//	go run ./bench/venv -n 7
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/python/venv"
)

func main() {
	n := flag.Int("n", 7, "further environments")
	python := flag.String("python", "", "interpreter; empty: python3")
	requirements := flag.String("requirements", "inmanta-module-fs inmanta-module-std<8",
		"what is installed, separated by blanks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *n, *python, strings.Fields(*requirements)); err != nil {
		fmt.Fprintln(os.Stderr, "venv:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, python string, requirements []string) error {
	dir, err := os.MkdirTemp("", "ordain-bench-venv-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	maker, err := venv.New(venv.Config{
		Python: python, CacheDir: filepath.Join(dir, "cache"), ToolsDir: filepath.Join(dir, "tools"),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return err
	}
	var times []time.Duration
	for i := range n + 1 {
		began := time.Now()
		_, err := maker.Ensure(ctx,
			venv.Spec{Dir: filepath.Join(dir, "venvs", strconv.Itoa(i)), Requirements: requirements})
		if err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	rest := slices.Sorted(slices.Values(times[1:]))
	fmt.Println("| measured | Ordain |\n| --- | --- |")
	fmt.Printf("| first environment, empty cache, uv installed on the way | %.2f s |\n", times[0].Seconds())
	fmt.Printf("| further ones with the same wheels: median of %d | %.3f s (%.3f to %.3f) |\n",
		n, rest[len(rest)/2].Seconds(), rest[0].Seconds(), rest[len(rest)-1].Seconds())
	return nil
}
