// Package lean keeps the memory small that a large program takes for itself.
//
// Around each page of the program file that is touched, Linux maps what else lies
// in the 64 KiB around it, as far as it is in memory already. Of a program whose
// code and tables have 50 MiB that makes 25 MiB for 5: what runs at the start,
// and what the runtime reads of types and functions, lies far apart.
//
// To map each page when it is touched takes 1 to 2 µs for each. A start touches
// many and is soon over: what it mapped is forgotten after it.
package lean
