package export

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/jsontext"
	"ordain.dev/ordain/internal/python/pytext"
)

// undefinedText takes the place of an unknown value in the attributes.
const undefinedText = `"<<undefined>>"`

// outcome says whether Go could write a field itself.
type outcome uint8

const (
	written    outcome = iota
	undefined          // the value is unknown
	ignored            // the resource is not exported
	needPython         // it is a reference, or Python has to raise an error about it
)

// field writes the value of a field. how is "python" for those that Python makes, and here one of:
//
//	flag_false, flag_true   the attribute, or this default when it has no value
//	managed                 the attribute; the resource is not exported when it is false
//	anything else           the attribute
func (e *exporter) field(i types.Instance, name, how string) (json.RawMessage, outcome) {
	read := e.heap.Attribute(i, name)
	switch how {
	case "flag_false", "flag_true":
		if read.State == eval.Known {
			if _, reference := read.Value.(*types.Reference); reference {
				return nil, needPython
			}
			if raw, state := plain(read.Value); state == written {
				return raw, written
			}
		}
		return json.RawMessage(strconv.FormatBool(how == "flag_true")), written
	case "managed":
		if read.State != eval.Known {
			return nil, needPython
		}
		switch v := read.Value.(type) {
		case types.Bool:
			if v {
				return json.RawMessage("true"), written
			}
			return nil, ignored
		case types.Unknown:
			return json.RawMessage(undefinedText), undefined
		}
		return nil, needPython
	}
	if read.State != eval.Known {
		return nil, needPython
	}
	if _, unknown := read.Value.(types.Unknown); unknown {
		return json.RawMessage(undefinedText), undefined
	}
	return plain(read.Value)
}

// plain writes a value as canonical JSON, if JSON has such a value.
func plain(v types.Value) (json.RawMessage, outcome) {
	raw, ok := appendPlain(nil, v)
	if !ok {
		return nil, needPython
	}
	return raw, written
}

// appendPlain reports false for a value that JSON does not have, and for references.
func appendPlain(b []byte, v types.Value) ([]byte, bool) {
	switch v := v.(type) {
	case types.Null:
		return append(b, "null"...), true
	case types.Bool:
		return strconv.AppendBool(b, bool(v)), true
	case types.Int:
		return strconv.AppendInt(b, int64(v), 10), true
	case types.BigInt:
		return v.Append(b, 10), true
	case types.Float:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return b, false
		}
		return append(b, pytext.Float(float64(v))...), true
	case types.Str:
		return jsontext.AppendString(b, string(v)), true
	case *types.Object:
		if v.Base == nil {
			return b, false
		}
		return appendPlain(b, v.Base)
	case *types.List:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			var ok bool
			if b, ok = appendPlain(b, item); !ok {
				return b, false
			}
		}
		return append(b, ']'), true
	case *types.Dict:
		b = append(b, '{')
		for i, key := range slices.Sorted(slices.Values(v.Keys)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(jsontext.AppendString(b, key), ':')
			var ok bool
			if b, ok = appendPlain(b, v.Values[key]); !ok {
				return b, false
			}
		}
		return append(b, '}'), true
	}
	return b, false
}
