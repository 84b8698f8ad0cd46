// Package venv finds Python and makes virtual environments.
//
//	Spec ──▶ hash ──same as in the marker──▶ nothing to do (milliseconds)
//	           └──other, or damaged──▶ <dir>.new-*: uv venv, uv pip install
//	                                     (python -m venv and pip where uv fails)
//	                                   rename to <dir>
//
// An environment is either complete, with a marker file, or absent. Its files
// are hard links into uv's cache, so a second environment with the same wheels
// takes a fraction of a second. Callers that want the same folder at the same
// time, in this process or another one, wait for a single build.
//
// Modules require inmanta-core, of which the worker carries a light
// implementation. They get a small wheel of ours instead (corewheel.go).
package venv
