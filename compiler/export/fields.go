package export

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
)

// undefinedText stands in the attributes for a value that is not known.
const undefinedText = `"<<undefined>>"`

// outcome is what became of a field that Go wrote itself.
type outcome uint8

const (
	written    outcome = iota
	undefined          // the value is unknown
	ignored            // the resource is not exported
	needPython         // a reference, or something to complain about in Python's words
)

// field gets the value of a field in one of the ways that need no Python.
func (e *exporter) field(i types.Instance, name, how string) (json.RawMessage, outcome) {
	read := e.heap.Attribute(i, name)
	switch how {
	case "flag_false", "flag_true":
		if read.State == eval.Known {
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

// plain writes a value as canonical JSON, where it is plain.
func plain(v types.Value) (json.RawMessage, outcome) {
	b := &bytes.Buffer{}
	if !writePlain(b, v) {
		return nil, needPython
	}
	return b.Bytes(), written
}

func writePlain(b *bytes.Buffer, v types.Value) bool {
	switch v := v.(type) {
	case types.Null:
		b.WriteString("null")
	case types.Bool:
		b.WriteString(strconv.FormatBool(bool(v)))
	case types.Int:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	case types.BigInt:
		b.WriteString(v.String())
	case types.Float:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return false
		}
		b.WriteString(types.FloatText(float64(v)))
	case types.Str:
		writeText(b, string(v))
	case *types.Object:
		if v.Text == nil {
			return false
		}
		writeText(b, *v.Text)
	case *types.List:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			if !writePlain(b, item) {
				return false
			}
		}
		b.WriteByte(']')
	case *types.Dict:
		fields := make(map[string]json.RawMessage, len(v.Keys))
		for _, key := range v.Keys {
			inner := &bytes.Buffer{}
			if !writePlain(inner, v.Values[key]) {
				return false
			}
			fields[key] = inner.Bytes()
		}
		b.Write(object(fields))
	default:
		return false
	}
	return true
}
