package export

import (
	"runtime"
	"sync"
)

// leastPart is what is not worth to be divided.
const leastPart = 500

// inParts has all processors do n pieces, each a part of them. What panics does
// so for who called it.
func inParts(n int, do func(from, to int)) {
	var done sync.WaitGroup
	var once sync.Once
	var panicked any
	size := max(leastPart, 1+n/runtime.GOMAXPROCS(0))
	for part := 0; part*size < n; part++ {
		done.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					once.Do(func() { panicked = cause })
				}
			}()
			do(part*size, min(n, part*size+size))
		})
	}
	done.Wait()
	if panicked != nil {
		panic(panicked)
	}
}
