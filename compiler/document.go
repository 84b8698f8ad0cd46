package compiler

import "ordain.dev/ordain/compiler/modeldoc"

// ModelDocument is the document of `--model-json`: the model with the resources of its export, or the
// error.
func (o *Outcome) ModelDocument() *modeldoc.Document {
	d := modeldoc.Failed(o.Document.Diagnostics...)
	if o.Result != nil {
		d = modeldoc.New(o.Result)
		if o.Result.Err == nil && !o.Document.Success {
			d.Success, d.Error = false, modeldoc.Failed(o.Document.Diagnostics...).Error
			d.Error.Location = nil // people see a place, but for programs errors of an export have none
		}
	}
	if d.Error != nil && !o.crashed {
		d.Error.Trace = o.Text // as it is printed
	}
	if o.Result == nil { // the files could not all be read
		for _, w := range o.Document.Warnings {
			if modeldoc.Lists(w.Kind) {
				d.Warnings = append(d.Warnings, modeldoc.Warning{Kind: w.Kind, Message: w.Message})
			}
		}
	}
	if o.Document.Output != nil {
		d.Output = o.Document.Output
	}
	if !o.exported {
		return d
	}
	d.Resources, d.ResourceSets = o.resources, map[string]string{}
	for _, r := range o.Document.Resources {
		if r.ResourceSet != "" {
			d.ResourceSets[r.ID.String()] = r.ResourceSet
		}
	}
	return d
}

// resources yields the resources one by one. Each is valid until the next.
func (o *Outcome) resources(yield func(modeldoc.Resource) bool) {
	var text []byte
	var requires [][]byte
	for _, r := range o.Document.Resources {
		text = r.ID.Append(text[:0])
		size := len(text)
		requires = requires[:0]
		for _, required := range r.Requires {
			from := len(text)
			text = required.Append(text)
			requires = append(requires, text[from:])
		}
		if !yield(modeldoc.Resource{ID: text[:size], Attributes: r.Attributes, Requires: requires}) {
			return
		}
	}
}
