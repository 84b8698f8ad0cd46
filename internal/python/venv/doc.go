// Package venv finds Python and makes virtual environments.
//
//	Spec ──▶ hash ──same as in the record, and no file changed──▶ nothing to do (milliseconds)
//	           └──other, or damaged──▶ <dir>.new-*: uv venv, uv pip install
//	                                     (python -m venv and pip where uv fails)
//	                                   bytecode, record, rename to <dir>
//
// An environment is either complete, with a marker file, or absent. All of its files are
// copies that no other environment shares. The record of an environment lies elsewhere and
// has the hash of every file; whether a file changed is seen from its times and inode, and
// only then is it read. A damaged environment is made again with the same versions.
//
// Packages with wheels are installed from one cache for all environments, by commands
// that run no code of packages. Packages without wheels run code of their own when they
// are built: that happens in a workshop of the environment's owner, confined if Config
// says how, and the result is copied (workshop.go, installing.go).
//
// Callers that want the same folder at the same time, in this process or another one,
// wait for a single build.
//
// Modules require inmanta-core, of which the worker carries a light
// implementation. They get a small wheel of ours instead (corewheel.go).
package venv
