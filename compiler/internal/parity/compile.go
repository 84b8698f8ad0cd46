package parity

import (
	"bytes"
	"context"
	"os"
	"slices"

	"ordain.dev/ordain/compiler"
)

// Compile compiles a case in dir with our compiler.
func Compile(ctx context.Context, c Case, dir string, o compiler.Options) (*Document, error) {
	if err := c.Write(dir); err != nil {
		return nil, err
	}
	o.Project, o.NoStd = dir, !c.Std
	o.Export, o.Partial, o.DeleteSets = c.Export, c.Partial, c.Delete
	if len(c.Env) > 0 {
		if len(o.Env) == 0 {
			o.Env = os.Environ()
		}
		o.Env = slices.Concat(o.Env, c.Env)
	}
	outcome := compiler.Run(ctx, o)
	var b bytes.Buffer
	if err := outcome.ModelDocument().Write(&b); err != nil {
		return nil, err
	}
	d, err := Normalise(b.Bytes(), append([]string{dir}, o.SitePackages...)...)
	if err != nil {
		return nil, err
	}
	if d.Files, err = c.Written(dir); err != nil || !c.Export || !d.Success {
		return d, err
	}
	// `--model-json` does not have these.
	d.RemovedSets = outcome.Document.RemovedSets
	for _, u := range outcome.Document.Unknowns {
		d.Unknowns = append(d.Unknowns, u.Parameter+" of "+u.Resource.String())
	}
	slices.Sort(d.Unknowns)
	return d, nil
}
