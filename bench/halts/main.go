// Command halts tells one story of pauses and halts to Ordain and to the
// reference, through the API that both answer, and prints beside each other what
// each answers, and what is deployed when.
//
//	go run ./bench/halts                          # installs the reference
//	go run ./bench/halts -reference-venv …/venv -postgres-bin …/bin
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"ordain.dev/ordain/bench/peer"
)

func main() {
	python := flag.String("python", "", "interpreter for Ordain; empty: its default")
	reference := flag.String("reference-python", "python3.13", "interpreter for the reference")
	venv := flag.String("reference-venv", "", "virtual environment that has inmanta-core already")
	postgres := flag.String("postgres-bin", "", "folder with PostgreSQL 16 or newer for the reference; empty: fetched")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *python, peer.Reference{Python: *reference, Venv: *venv, PostgresBin: *postgres}); err != nil {
		fmt.Fprintln(os.Stderr, "halts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, python string, reference peer.Reference) error {
	dir, err := os.MkdirTemp("", "ordain-halts-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // the databases run as another user
		return err
	}
	binary, err := peer.Build(ctx, dir)
	if err != nil {
		return err
	}
	state := filepath.Join(dir, "state-ordain")
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	ordain, err := peer.StartOrdain(ctx, binary, state, python)
	if err != nil {
		return err
	}
	defer ordain.Stop()
	other, err := startReference(ctx, reference, dir)
	if err != nil {
		return err
	}
	defer other.Stop()
	var told [2][]line
	for i, s := range []*peer.Server{ordain, other} {
		t := &teller{server: s}
		if err := t.story(ctx, filepath.Join(dir, fmt.Sprint("repo", i))); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		told[i] = t.lines
	}
	fmt.Printf("| step | %s | %s | |\n| --- | --- | --- | --- |\n", ordain.Name, other.Name)
	for i, ours := range told[0] {
		mark := ""
		if ours.is != told[1][i].is {
			mark = "differs"
		}
		fmt.Printf("| %s | %s | %s | %s |\n", ours.step, ours.is, told[1][i].is, mark)
	}
	return nil
}

func startReference(ctx context.Context, r peer.Reference, dir string) (*peer.Server, error) {
	var err error
	if r.PostgresBin == "" {
		if r.PostgresBin, err = peer.FetchPostgres(ctx, filepath.Join(dir, "pg")); err != nil {
			return nil, err
		}
	}
	r.Dir = filepath.Join(dir, "reference")
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := r.Install(ctx); err != nil {
		return nil, err
	}
	return r.Start(ctx)
}

// limit bounds a wait.
func limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
