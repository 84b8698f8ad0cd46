package eval

import (
	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// The contract between the compiler and its callers has two halves that are
// defined with the program: what goes in, and the errors that come out.
type (
	Input          = program.Input
	ModuleCode     = program.ModuleCode
	PrecedenceRule = program.PrecedenceRule
	Warning        = program.Warning
	Error          = program.Error
)

// The contract with Python: see program.Host.
type (
	Host           = program.Host
	BatchHost      = program.BatchHost
	Twins          = program.Twins
	Twin           = program.Twin
	Loaded         = program.Loaded
	Signature      = program.Signature
	Param          = program.Param
	ParamKind      = program.ParamKind
	Annotation     = program.Annotation
	Dataclass      = program.Dataclass
	DataclassField = program.DataclassField
	PluginCall     = program.PluginCall
	NamedValue     = program.NamedValue
	PluginError    = program.PluginError
	Outcome        = program.Outcome
	Heap           = program.Heap
	Read           = program.Read
	ReadState      = program.ReadState
	Slot           = program.Slot
)

// Kinds of parameters.
const (
	Positional  = program.Positional
	VarArgs     = program.VarArgs
	KeywordOnly = program.KeywordOnly
	VarKeywords = program.VarKeywords
)

// States of a read.
const (
	Known    = program.Known
	Unset    = program.Unset
	Missing  = program.Missing
	Optional = program.Optional
)

// TypeNames lists the full names of the entities, typedefs and implementations
// that files define.
func TypeNames(files []*syntax.File) []string { return program.TypeNames(files) }

// Constant returns the value of an expression, or the part of it that keeps it
// from being a constant.
func Constant(x syntax.Expr) (v types.Value, not syntax.Expr) { return program.Constant(x) }
