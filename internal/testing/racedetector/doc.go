// Package racedetector tells tests whether the race detector is on. It makes
// our code five to ten times slower, and what it looks for does not depend on
// which of thousands of models is compiled: large matrices of like cases take
// a part of them then, and all in an ordinary run.
//
// Tests that start other programs, which may be this very binary, learn from
// it what the race detector found there.
package racedetector
