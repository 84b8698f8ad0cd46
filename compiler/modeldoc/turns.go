package modeldoc

import (
	"runtime"
	"sync"
)

// turn is how many entries are written at once.
const turn = 128

// inTurns has all processors write n entries and gives what they wrote in order:
//
//	writer 0:  entries 0 …    entries 256 …
//	writer 1:  entries 128 …  entries 384 …
//	give:      0, 128, 256, 384, …
//
// Each writer is at most one turn ahead, so little lies in memory. What panics
// does so for who called it.
func inTurns(n int, writer func() func(b []byte, from, to int) []byte, give func([]byte)) {
	turns := (n + turn - 1) / turn
	writers := min(turns, runtime.GOMAXPROCS(0))
	if writers < 2 {
		if write := writer(); n > 0 {
			give(write(nil, 0, n))
		}
		return
	}
	var done sync.WaitGroup
	defer done.Wait()
	stop := make(chan struct{})
	defer close(stop)
	type written struct {
		b        []byte
		panicked any
	}
	full, free := make([]chan written, writers), make([]chan []byte, writers)
	for k := range writers {
		full[k], free[k] = make(chan written, 1), make(chan []byte, 2)
		free[k] <- nil
		free[k] <- nil
		done.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					select {
					case full[k] <- written{panicked: cause}:
					case <-stop:
					}
				}
			}()
			write := writer()
			for t := k; t < turns; t += writers {
				var b []byte
				select {
				case b = <-free[k]:
				case <-stop:
					return
				}
				b = write(b[:0], t*turn, min(n, t*turn+turn))
				select {
				case full[k] <- written{b: b}:
				case <-stop:
					return
				}
			}
		})
	}
	for t := range turns {
		one := <-full[t%writers]
		if one.panicked != nil {
			panic(one.panicked)
		}
		give(one.b)
		free[t%writers] <- one.b
	}
}
