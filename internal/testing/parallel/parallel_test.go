package parallel_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"ordain.dev/ordain/internal/testing/parallel"
)

func TestMain(m *testing.M) { os.Exit(parallel.Wide(m, 3).Run()) }

// As many tests as were asked for run at the same time: each waits until all have begun.
func TestTestsRunBesideEachOther(t *testing.T) {
	value := flag.Lookup("test.parallel").Value.String()
	want := 3 * runtime.GOMAXPROCS(0)
	if value != strconv.Itoa(want) {
		t.Skipf("-parallel=%s was asked for", value)
	}
	var begun sync.WaitGroup
	begun.Add(want)
	for i := range want {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			begun.Done()
			begun.Wait()
		})
	}
}
