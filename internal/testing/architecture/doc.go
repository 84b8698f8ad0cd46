// Package architecture holds no code, only the tests that keep the shape of
// the program: who may import whom, and what every package must have.
package architecture
