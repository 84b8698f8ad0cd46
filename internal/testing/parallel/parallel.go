// Package parallel runs more tests of a package beside each other than there are processors. Tests that wait for
// servers, browsers, databases or timers would leave the processors idle otherwise.
package parallel

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

// suite is what TestMain runs: a testing.M, or something around it.
type suite interface{ Run() int }

// Wide returns a suite that runs up to n parallel tests for each processor. A number that -parallel gives takes
// precedence. Call it from TestMain; only tests that call t.Parallel run beside each other.
func Wide(m suite, n int) suite { return wide{m, n} }

type wide struct {
	suite
	n int
}

func (s wide) Run() int {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(strconv.Itoa(s.n * runtime.GOMAXPROCS(0))); err != nil {
			fmt.Fprintln(os.Stderr, "the number of parallel tests:", err)
			return 1
		}
	}
	return s.suite.Run()
}
