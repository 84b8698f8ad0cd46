package eval

import (
	"context"

	"ordain.dev/ordain/internal/diag"
)

// Check finds what can be known to be wrong without running anything: it
// imports the plug-ins' signatures and goes through the definition phase. No
// plug-in is called. The result has no instances and no variables.
func Check(ctx context.Context, in Input) *Result {
	in.Static = true
	result := &Result{}
	loaded := &Loaded{}
	if in.Host != nil {
		got, err := in.Host.Load(in.code())
		result.Output = taken(in.Host)
		if err != nil {
			result.Err, result.Further = loadErrors(err)
			in.alsoWrong(ctx, result)
			return result
		}
		loaded = got
		result.Warnings = append(result.Warnings, loaded.Warnings...)
	}
	for _, f := range in.Files {
		result.Warnings = append(result.Warnings, f.Warnings...)
	}
	p := define(ctx, in, loaded)
	if p.wrong() {
		p.tell(result)
		return result
	}
	result.Warnings = append(result.Warnings, p.warnings...)
	result.Entities = p.entities
	return result
}

// Unload leaves Python alone: what plug-ins there are is not asked.
func (in *Input) Unload() {
	in.Host, in.Unloaded = nil, map[string]bool{}
	for _, m := range in.Modules {
		if len(m.Files) > 0 {
			in.Unloaded[m.Name] = true
		}
	}
}

// CheckRest looks for more that is wrong where not every file could be read:
// whatever of it depends on what is missing is not told.
func CheckRest(ctx context.Context, in Input) *Result {
	in.Unload()
	result := &Result{}
	guarded(func() { result = Check(ctx, in) })
	return result
}

// alsoWrong adds what is wrong with the model of a compile whose plug-ins
// could not be imported.
func (in Input) alsoWrong(ctx context.Context, result *Result) {
	in.Static = true
	in.Unload()
	guarded(func() {
		p := define(ctx, in, &Loaded{})
		if !p.wrong() {
			return
		}
		if result.Err.code == diag.Code("InvalidTypeAnnotation") && result.Err.Kind != "RuntimeException" &&
			p.early > 0 {
			// annotations are looked at once everything is defined; only whether
			// each parameter has one is seen before
			result.Further = append([]*Error{result.Err}, result.Further...)
			result.Err, p.found.list = p.found.list[0], p.found.list[1:]
		}
		result.Further = append(result.Further, p.found.list...)
	})
}
