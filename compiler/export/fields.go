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
func (w *writer) field(i types.Instance, name, how string) (json.RawMessage, outcome) {
	read := w.heap.Attribute(i, name)
	switch how {
	case "flag_false", "flag_true":
		if read.State == eval.Known {
			if _, reference := read.Value.(*types.Reference); reference {
				return nil, needPython
			}
			if raw, state := w.texts.plain(read.Value); state == written {
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
	return w.texts.plain(read.Value)
}

// arena holds the text of fields: many short ones in one allocation.
type arena struct {
	rest  []byte
	block int // which of them rest is
}

// arenaMark is a point to which an arena can be taken back.
type arenaMark struct{ block, size int }

func (a *arena) mark() arenaMark { return arenaMark{a.block, len(a.rest)} }

// release forgets what was kept since.
func (a *arena) release(m arenaMark) {
	if a.block != m.block {
		m.size = 0
	}
	a.rest = a.rest[:m.size]
}

const arenaSize = 64 << 10

// keep writes what write appends and gives it a place of its own.
func (a *arena) keep(write func(b []byte) ([]byte, bool)) (json.RawMessage, bool) {
	if cap(a.rest)-len(a.rest) < arenaSize/16 {
		a.rest = make([]byte, 0, arenaSize)
		a.block++
	}
	from := len(a.rest)
	b, ok := write(a.rest)
	if !ok {
		return nil, false
	}
	if cap(b) == cap(a.rest) { // else it outgrew the arena and has a place already
		a.rest = b
	}
	return b[from:len(b):len(b)], true
}

// plain writes a value as canonical JSON, where it is plain.
func (a *arena) plain(v types.Value) (json.RawMessage, outcome) {
	raw, ok := a.keep(func(b []byte) ([]byte, bool) { return appendPlain(b, v) })
	if !ok {
		return nil, needPython
	}
	return raw, written
}

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
