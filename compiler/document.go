package compiler

import "ordain.dev/ordain/compiler/modeldoc"

// ModelDocument is what `--model-json` writes: the model, or why there is
// none, with the resources of its export.
func (o *Outcome) ModelDocument() *modeldoc.Document {
	d := modeldoc.Failed(o.Document.Diagnostics...)
	if o.Result != nil {
		d = modeldoc.New(o.Result)
		if o.Result.Err == nil && !o.Document.Success {
			d.Success, d.Error = false, modeldoc.Failed(o.Document.Diagnostics...).Error
		}
	}
	if o.Document.Output != nil {
		d.Output = o.Document.Output
	}
	d.ResourceSets = map[string]string{}
	for _, r := range o.Document.Resources {
		one := modeldoc.Resource{ID: r.ID.String(), Attributes: r.Attributes, Requires: []string{}}
		for _, required := range r.Requires {
			one.Requires = append(one.Requires, required.String())
		}
		d.Resources = append(d.Resources, one)
		if r.ResourceSet != "" {
			d.ResourceSets[one.ID] = r.ResourceSet
		}
	}
	return d
}
