package modeldoc

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/types"
)

// Value writes a value of the model as JSON.
func Value(v types.Value) json.RawMessage {
	var b bytes.Buffer
	write(&b, v)
	return b.Bytes()
}

func write(b *bytes.Buffer, v types.Value) {
	switch v := v.(type) {
	case nil, types.Null:
		b.WriteString("null")
	case types.Unknown:
		b.WriteString(`{"$unknown":true}`)
	case types.Bool:
		b.WriteString(strconv.FormatBool(bool(v)))
	case types.Int:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	case types.BigInt:
		b.WriteString(v.String())
	case types.Float:
		writeFloat(b, float64(v))
	case types.Str:
		writeString(b, string(v))
	case *types.List:
		b.WriteByte('[')
		for i, item := range v.Items {
			comma(b, i)
			write(b, item)
		}
		b.WriteByte(']')
	case *types.Dict:
		b.WriteString(`{"$dict":{`)
		for i, k := range v.Keys {
			comma(b, i)
			writeString(b, k)
			b.WriteByte(':')
			write(b, v.Values[k])
		}
		b.WriteString("}}")
	case *types.Reference:
		b.WriteString(`{"$reference":{"type":`)
		writeString(b, v.Type)
		b.WriteString(`,"args":{`)
		for i, a := range v.Args {
			comma(b, i)
			writeString(b, a.Name)
			b.WriteByte(':')
			write(b, a.Value)
		}
		b.WriteString("}}}")
	case *types.Object:
		if v.Text != nil {
			writeString(b, *v.Text)
			return
		}
		b.WriteString(`{"$python":`)
		writeString(b, v.Class)
		b.WriteByte('}')
	case types.Instance:
		b.WriteString(`{"$ref":`)
		writeString(b, id(v))
		b.WriteByte('}')
	}
}

func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

// writeFloat keeps a float a float: 1.0 and not 1.
func writeFloat(b *bytes.Buffer, f float64) {
	switch {
	case math.IsNaN(f), math.IsInf(f, 0):
		b.WriteString(`{"$float":"` + types.FloatText(f) + `"}`)
	default:
		b.WriteString(strings.Replace(types.FloatText(f), "e+", "e", 1))
	}
}

func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded, into a buffer
	b.Truncate(b.Len() - 1)
}
