// Package modeldoc writes the document of `ordain compile --model-json`: what a
// compile made, for programs to read. Its shape is a promise to the outside;
// COMPILER-CONTRACT.md describes it.
package modeldoc
