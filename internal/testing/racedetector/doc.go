// Package racedetector tells tests whether the race detector is on. It makes code
// five to ten times slower, and races do not depend on which of thousands of
// models is compiled, so tests over large matrices run only a part of them then.
//
// It also collects races that the detector finds in other processes that a test
// starts, which are often this very test binary.
package racedetector
