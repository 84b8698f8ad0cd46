//go:build !race

package racedetector

// On tells whether the race detector is on.
const On = false
