package eval

import (
	"context"
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
	se := newSession(ctx, in)
	p := define(in, loaded, se.holds)
	if p.wrong() {
		se.fail(p, result)
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
		p := define(in, &Loaded{}, newSession(ctx, in).holds)
		if !p.wrong() {
			return
		}
		result.Err, result.Further = p.besideLoadErrors(result.Err, result.Further)
	})
}
