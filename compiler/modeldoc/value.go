package modeldoc

import (
	"math"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/jsontext"
	"ordain.dev/ordain/internal/python/pytext"
)

// Value writes a value of the model as JSON.
func Value(v types.Value) []byte { return appendValue(nil, v) }

func appendValue(b []byte, v types.Value) []byte {
	switch v := v.(type) {
	case nil, types.Null:
		return append(b, "null"...)
	case types.Unknown:
		return append(b, `{"$unknown":true}`...)
	case types.Bool:
		return strconv.AppendBool(b, bool(v))
	case types.Int:
		return strconv.AppendInt(b, int64(v), 10)
	case types.BigInt:
		return v.Append(b, 10)
	case types.Float:
		return appendFloat(b, float64(v))
	case types.Complex:
		return append(b, `{"$python":"complex"}`...)
	case types.Str:
		return jsontext.AppendString(b, string(v))
	case *types.List:
		b = append(b, '[')
		for i, item := range v.Items {
			b = appendValue(comma(b, i), item)
		}
		return append(b, ']')
	case *types.Dict:
		b = append(b, `{"$dict":{`...)
		for i, k := range v.Keys {
			b = append(jsontext.AppendString(comma(b, i), k), ':')
			b = appendValue(b, v.Values[k])
		}
		return append(b, "}}"...)
	case *types.Reference:
		b = jsontext.AppendString(append(b, `{"$reference":{"type":`...), v.Type)
		b = append(b, `,"args":{`...)
		for i, a := range v.Args {
			b = append(jsontext.AppendString(comma(b, i), a.Name), ':')
			b = appendValue(b, a.Value)
		}
		return append(b, "}}}"...)
	case *types.Object:
		if v.Base != nil {
			return appendValue(b, v.Base)
		}
		return append(jsontext.AppendString(append(b, `{"$python":`...), className(v.Class)), '}')
	case types.Instance:
		return append(appendID(append(b, `{"$ref":"`...), v), `"}`...)
	}
	return b
}

func appendID(b []byte, i types.Instance) []byte { return strconv.AppendUint(b, i.InstanceID(), 10) }

func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// appendFloat keeps a float a float: 1.0 and not 1.
func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, `{"$float":"`+pytext.Float(f)+`"}`...)
	}
	return append(b, strings.Replace(pytext.Float(f), "e+", "e", 1)...)
}

// className is the name of a class without its module and the classes around it.
func className(qualified string) string {
	return qualified[strings.LastIndexByte(qualified, '.')+1:]
}
