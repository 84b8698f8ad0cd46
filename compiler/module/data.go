package module

import (
	"time"

	"ordain.dev/ordain/compiler/module/pydantic"
)

// dataOf is a value as the schema takes it. A list or a section that stands in
// several places, or in itself, is one object.
func dataOf(v value) any {
	return data{}.of(v)
}

// data has the objects that were made, by their nodes.
type data map[any]any

func (d data) of(v value) any {
	switch is := v.is.(type) {
	case []value:
		if len(is) == 0 {
			return &pydantic.Items{Kind: pydantic.List}
		}
		if made, ok := d[&is[0]]; ok {
			return made
		}
		items := &pydantic.Items{Kind: pydantic.List}
		d[&is[0]] = items
		for _, item := range is {
			items.Of = append(items.Of, d.of(item))
		}
		return items
	case *mapping:
		if made, ok := d[is]; ok {
			return made
		}
		dict := &pydantic.Dict{}
		d[is] = dict
		for i, k := range is.keys {
			dict.Keys = append(dict.Keys, d.of(k))
			dict.Values = append(dict.Values, d.of(is.values[i]))
		}
		return dict
	case *tuple:
		return &pydantic.Items{Kind: pydantic.Tuple, Of: []any{d.of(is.key), d.of(is.value)}}
	case set:
		items := &pydantic.Items{Kind: pydantic.Set}
		for _, k := range is.keys {
			items.Of = append(items.Of, d.of(k))
		}
		return items
	case tangle:
		return d.of(value{v.node, is.is})
	case time.Time:
		return dateOf(is)
	}
	return v.is
}
