// Command venv measures how long an executor's virtual environment takes: the
// first one, with an empty cache, further ones with the same wheels, and looking whether
// one is undamaged. It also measures how much of the disk they take.
//
//	go run ./bench/venv -n 7
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	var times, looks []time.Duration
	for i := range n + 1 {
		began := time.Now()
		_, err := maker.Ensure(ctx,
			venv.Spec{Dir: filepath.Join(dir, "venvs", strconv.Itoa(i)), Requirements: requirements})
		if err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	for range 20 {
		began := time.Now()
		r, err := maker.Ensure(ctx, venv.Spec{Dir: filepath.Join(dir, "venvs", "0"), Requirements: requirements})
		if err != nil || r.Built {
			return errors.Join(err, errors.New("an undamaged environment was made again"))
		}
		looks = append(looks, time.Since(began))
	}
	slices.Sort(looks)
	one, files, err := used(filepath.Join(dir, "venvs", "0"))
	if err != nil {
		return err
	}
	cache, _, err := used(filepath.Join(dir, "cache"))
	if err != nil {
		return err
	}
	rest := slices.Sorted(slices.Values(times[1:]))
	fmt.Println("| measured | Ordain |\n| --- | --- |")
	fmt.Printf("| first environment, empty cache, uv installed on the way | %.2f s |\n", times[0].Seconds())
	fmt.Printf("| further ones with the same wheels: median of %d | %.3f s (%.3f to %.3f) |\n",
		n, rest[len(rest)/2].Seconds(), rest[0].Seconds(), rest[len(rest)-1].Seconds())
	fmt.Printf("| an undamaged one of %d files is looked at: median of %d | %.1f ms |\n",
		files, len(looks), float64(looks[len(looks)/2].Microseconds())/1000)
	fmt.Printf("| disk: each environment, the cache of all | %d MB, %d MB |\n", one>>20, cache>>20)
	return nil
}

// used returns the bytes that the files below a folder take and that no other name has a
// share in, and how many files there are.
func used(dir string) (bytes int64, files int, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += st.Blocks * 512 / int64(max(1, st.Nlink))
		}
		return nil
	})
	return bytes, files, err
}
