// Package module finds and reads what a compile needs, from disk only: the
// project, the modules that it imports, and their files.
//
//	main.cf ──import──▶ name ──▶ a package in DIR/.env        (generation 2)
//	                         └─▶ a folder on the modulepath   (generation 1)
//
// A module of the second generation is a Python package: released, its model
// lies inside the package; editable, the package lies inside the module's
// repository. One of the first generation is a folder with a module.yml. The
// second wins where both exist.
//
// Imports are followed from a stack, the one found last first, and files come
// out grouped by module. That order shows in the order of side effects of a
// compile, so it is kept exactly, while files are read ahead in parallel.
package module
