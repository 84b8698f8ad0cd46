// Package modeldoc writes the document of `ordain compile --model-json`: the result of a compile,
// for programs to read. Other programs rely on its form, which COMPILER-CONTRACT.md describes.
package modeldoc
