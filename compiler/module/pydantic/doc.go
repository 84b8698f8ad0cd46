// Package pydantic checks data against a schema in the way of pydantic's lax mode,
// which the reference reads project.yml, module.yml and setup.cfg with, and says
// what does not fit in pydantic's words.
//
// Data are the values of Python that a file gives: nil, bool, *big.Int, float64,
// string, []byte, *Items, *Dict and Other.
package pydantic
