package plugin

import (
	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
)

// exception is a Python exception as the worker describes it.
type exception struct {
	Kind    string  `json:"kind"`
	Class   string  `json:"class"`
	Message string  `json:"message"`
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Trace   string  `json:"trace"`
	Missing string  `json:"missing"`
	Unread  *[3]any `json:"unread"` // file, line, column of a syntax error
	// These are of a compiler exception: the place in the model, and its causes.
	At     *[3]any      `json:"at"` // file, line, column
	Causes []*exception `json:"causes"`
	Hint   string       `json:"hint"`  // the notes of the exception
	Cause  *exception   `json:"cause"` // what an ExternalException wraps

	Module    string `json:"module"`
	Importing string `json:"importing"`
}

func (e *exception) pluginError() eval.PluginError {
	made := eval.PluginError{
		Kind:    e.Kind,
		Class:   e.Class,
		Message: e.Message,
		File:    e.File,
		Line:    e.Line,
		Unread:  span(e.Unread),
		At:      span(e.At),
		Trace:   e.Trace,
		Notes:   e.Hint,
	}
	if e.Cause != nil {
		wrapped := e.Cause.pluginError()
		made.Wrapped = &wrapped
	}
	for _, cause := range e.Causes {
		made.Causes = append(made.Causes, cause.pluginError())
	}
	return made
}

// span is a place that the worker wrote as file, line and column; nil for none.
func span(place *[3]any) *syntax.Span {
	if place == nil {
		return nil
	}
	file, _ := place[0].(string)
	line, _ := place[1].(float64)
	column, _ := place[2].(float64)
	at := syntax.Pos{Line: int32(line), Col: int32(max(column, 1))}
	return &syntax.Span{File: &syntax.File{Path: file}, Start: at, End: at}
}

// signature is eval.Signature as the worker writes it.
type signature struct {
	Name   string `json:"name"`
	Params []struct {
		Name    string           `json:"name"`
		Kind    eval.ParamKind   `json:"kind"`
		Type    *eval.Annotation `json:"type"`
		Default bool             `json:"default"`
	} `json:"params"`
	Return       *eval.Annotation `json:"return"`
	AllowUnknown bool             `json:"allow_unknown"`
	Emits        bool             `json:"emits"`
	Deprecated   bool             `json:"deprecated"`
	ReplacedBy   string           `json:"replaced_by"`
	Context      [3]any           `json:"context"` // position (below zero: none), name, keyword only
	File         string           `json:"file"`
	Line         int              `json:"line"`
}

func (s *signature) signature() *eval.Signature {
	made := &eval.Signature{
		Name: s.Name, Return: s.Return, AllowUnknown: s.AllowUnknown, Emits: s.Emits,
		Deprecated: s.Deprecated, ReplacedBy: s.ReplacedBy, File: s.File, Line: s.Line,
	}
	at, _ := s.Context[0].(float64)
	made.Context = s.Context[0] == nil || at >= 0
	if only, _ := s.Context[2].(bool); only {
		made.ContextKeyword, _ = s.Context[1].(string)
	}
	for _, p := range s.Params {
		made.Params = append(made.Params, eval.Param{Name: p.Name, Kind: p.Kind, Type: p.Type, HasDefault: p.Default})
	}
	return made
}
