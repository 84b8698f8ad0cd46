// Package lean keeps the memory small that a large program takes for itself.
//
// Around each page of the program file that is touched, Linux maps what else lies
// in the 64 KiB around it, as far as it is in memory already. Of a program whose
// code and tables have 50 MiB that makes 25 MiB for 5: what runs at the start,
// and what the runtime reads of types and functions, lies far apart.
//
// A program that imports this package maps what it touches and nothing else,
// where the system can do so. It begins with the initialisation of this package,
// which is among the first: it imports next to nothing, and of those packages
// whose imports are ready the one whose path sorts first is initialised first.
//
// What the runtime's own start touched, which looks through the tables, stays
// until somebody has the program forgotten: 3 to 5 MiB. To drop it at once takes a
// millisecond, half of it for what is touched again.
package lean
