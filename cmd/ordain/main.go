// Command ordain keeps infrastructure equal to the intent committed in Git.
package main

import (
	"os"
	_ "time/tzdata" // maintenance windows have time zones, also where the machine knows none

	"ordain.dev/ordain/cmd/ordain/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
