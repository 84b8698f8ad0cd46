package workers_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/internal/testing/parallel"
	"ordain.dev/ordain/internal/testing/racedetector"
)

// This test binary is also the program, and a provisioner that looks around.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "spy" {
		os.Exit(spy())
	}
	if len(os.Args) > 1 && os.Args[1] == "provisioner" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	os.Exit(racedetector.Main(parallel.Wide(m, 3)))
}

// spy tries what a provisioner must not do, and what it must be able to do, and prints what it could.
func spy() int {
	var folder string
	for i, arg := range os.Args {
		if arg == "--state-dir" {
			folder = os.Args[i+1]
		}
	}
	state := filepath.Dir(filepath.Dir(filepath.Dir(folder)))
	say := func(what string) { fmt.Fprintln(os.Stderr, "spy: "+what) }
	for _, path := range strings.Split(os.Getenv("SPY_PATHS"), ":") {
		if _, err := os.ReadFile(path); err == nil {
			say("read " + path)
		}
	}
	if found, _ := os.ReadDir(state); len(found) > 1 {
		say(fmt.Sprintf("listed the state directory: %v", found))
	}
	if found, _ := os.ReadDir(filepath.Dir(filepath.Dir(folder))); len(found) > 1 {
		say(fmt.Sprintf("listed folders of projects: %v", found))
	}
	if conn, err := net.Dial("unix", os.Getenv("SPY_SOCKET")); err == nil {
		_ = conn.Close()
		say("connected to the database")
	}
	for _, variable := range os.Environ() {
		if strings.Contains(variable, "hunter2") {
			say("has the variable " + variable)
		}
	}
	if os.Geteuid() == 0 {
		say("is root")
	}
	if err := os.WriteFile(filepath.Join(folder, "own"), nil, 0o600); err == nil {
		say("can write to its folder")
	}
	if conn, err := net.Dial("tcp", os.Getenv("SPY_TCP")); err == nil {
		_ = conn.Close()
		say("can reach the network")
	}
	say("is done")
	time.Sleep(time.Hour)
	return 0
}
