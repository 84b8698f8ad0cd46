// Command tool compares Ordain's compiler with the reference, inmanta-core:
//
//	go run ./compiler/internal/parity/tool record     the corpus: show differences, record outcomes
//	go run ./compiler/internal/parity/tool search     generated models: show differences, cut down
//	go run ./compiler/internal/parity/tool nightly    generated models of every family, from fixed seeds
//
// Each command takes -h. All need an interpreter that has inmanta-core (and inmanta-module-std for
// the cases with std): -reference-python or ORDAIN_REFERENCE_PYTHON names one; without either, the
// pinned versions are installed once into the user's cache.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

const usage = "usage: tool record|search|nightly [flags]"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(context.Context, []string) error{
		"record": record, "search": search, "nightly": nightly,
	}
	command, ok := commands[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := command(ctx, os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
