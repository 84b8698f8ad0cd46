// Package module finds and reads what a compile needs from the disk: the project, the
// modules that it imports, and their files.
//
//	main.cf ──import──▶ name ──▶ a package in DIR/.env        (generation 2)
//	                         ├─▶ a folder on the modulepath   (generation 1)
//	                         └─▶ a module of the compiler     (generation 2: ordain)
//
// A module of the second generation is a Python package. If it is released, its model
// lies inside the package; if it is editable, the package lies inside the module's
// repository. A module of the first generation is a folder with a module.yml. If both
// exist, the second generation wins.
//
// Imports are followed from a stack, the last one first, and files are grouped by
// module. The side effects of a compile follow this order, so it is kept exactly,
// while files are read in the background.
//
// Everything that is wrong with project.yml, module.yml or setup.cfg is collected and
// reported in one error, each problem with its line and what to do about it.
package module
