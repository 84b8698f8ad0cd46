// Package venv finds Python and makes virtual environments.
//
//	Spec ──▶ hash ──same as in the marker──▶ nothing to do (milliseconds)
//	           └──other, or damaged──▶ <dir>.new-*: uv venv, uv pip install
//	                                     (python -m venv and pip where uv fails)
//	                                   rename to <dir>
//
// An environment is there complete, with a marker file, or not at all. Wheels
// are hard-linked from uv's cache, so the second environment with the same
// wheels costs a fraction of a second. Whoever wants the same folder at the
// same time waits for the one build, in this process or another.
//
// The modules that people install require inmanta-core, of which the worker
// carries a light implementation. They find a small wheel of ours instead: see
// corewheel.go.
package venv
