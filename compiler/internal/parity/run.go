package parity

import (
	"bytes"
	"context"

	"ordain.dev/ordain/compiler"
)

// Compile compiles a case in dir with our compiler.
func Compile(ctx context.Context, c Case, dir string, o compiler.Options) (*Document, error) {
	if err := c.Write(dir); err != nil {
		return nil, err
	}
	o.Project, o.NoStd = dir, !c.Std
	var b bytes.Buffer
	if err := compiler.Run(ctx, o).ModelDocument().Write(&b); err != nil {
		return nil, err
	}
	return Normalise(b.Bytes(), dir)
}
