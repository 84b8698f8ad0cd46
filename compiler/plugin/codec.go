package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/jsontext"
	"ordain.dev/ordain/internal/python/pytext"
)

const (
	// shareFrom is the number of items from which a list gets a number, so that it is sent
	// once. Dicts always get one, because modules keep caches by their identity.
	shareFrom = 16
	// aheadMax bounds how many attributes a message has that Python did not ask for, and
	// aheadDepth how far they are from the instance.
	aheadMax   = 4096
	aheadDepth = 3
	// depthMax bounds how deep values nest. Python's own limit is about the same.
	depthMax = 1000
)

// codec encodes values as the JSON of the protocol (PROTOCOL.md) and decodes them. It remembers
// what the worker already has.
type codec struct {
	host      *Host
	instances map[uint64]types.Instance
	// sent are the attributes that the worker has, by instance. It knows all instances with an entry.
	sent     map[uint64]map[string]bool
	learned  map[string][]string    // attributes that Python has read, by entity
	objects  map[uint64]types.Value // *types.Reference and *types.Object by handle
	open     map[uint64]bool        // handles of objects whose arguments are being decoded
	shared   map[any]uint64         // numbers of *types.List and *types.Dict
	byNumber []types.Value
	ahead    int // how many more attributes this message may have
	depth    int // of the value that is being decoded
}

func newCodec(h *Host) *codec {
	return &codec{
		host:      h,
		instances: map[uint64]types.Instance{},
		sent:      map[uint64]map[string]bool{},
		learned:   map[string][]string{},
		objects:   map[uint64]types.Value{},
		open:      map[uint64]bool{},
		shared:    map[any]uint64{},
	}
}

// begin starts a message.
func (c *codec) begin() { c.ahead = aheadMax }

// learn remembers that Python reads an attribute of an entity.
func (c *codec) learn(entity, name string) {
	if !slices.Contains(c.learned[entity], name) {
		c.learned[entity] = append(c.learned[entity], name)
	}
}

func (c *codec) encode(b *bytes.Buffer, v types.Value) error { return c.write(b, v, 0) }

func (c *codec) write(b *bytes.Buffer, v types.Value, depth int) error {
	switch v := v.(type) {
	case nil, types.Null:
		b.WriteString("null")
	case types.Bool:
		b.WriteString(strconv.FormatBool(bool(v)))
	case types.Int:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	case types.BigInt:
		b.WriteString(v.String())
	case types.Float:
		writeFloat(b, float64(v))
	case types.Complex:
		fmt.Fprintf(b, `{"c":[%q,%q]}`, pytext.Float(real(v)), pytext.Float(imag(v)))
	case types.Str:
		writeString(b, string(v))
	case *types.List:
		return c.writeShared(b, v, len(v.Items) >= shareFrom, func() error { return c.writeItems(b, v.Items, depth) })
	case *types.Dict:
		return c.writeShared(b, v, true, func() error { return c.writeDict(b, v, depth) })
	case types.Instance:
		return c.writeInstance(b, v, depth)
	case types.Unknown:
		fmt.Fprintf(b, `{"u":%d}`, max(v.Number, 1))
	case *types.Reference:
		fmt.Fprintf(b, `{"r":%d}`, v.Handle)
	case *types.Object:
		fmt.Fprintf(b, `{"o":%d}`, v.Handle)
	default:
		return fmt.Errorf("plugin: a value of type %T cannot go to Python", v)
	}
	return nil
}

func (c *codec) writeShared(b *bytes.Buffer, v types.Value, share bool, content func() error) error {
	if !share {
		return content()
	}
	if number, ok := c.shared[v]; ok {
		fmt.Fprintf(b, `{"s":%d}`, number)
		return nil
	}
	number := uint64(len(c.byNumber))
	c.byNumber = append(c.byNumber, v)
	fmt.Fprintf(b, `{"s":%d,"v":`, number)
	if err := content(); err != nil {
		return err
	}
	b.WriteByte('}')
	c.shared[v] = number // only now: it cannot refer to itself
	return nil
}

func (c *codec) writeItems(b *bytes.Buffer, items []types.Value, depth int) error {
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := c.write(b, item, depth); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func (c *codec) writeDict(b *bytes.Buffer, d *types.Dict, depth int) error {
	b.WriteString(`{"d":[`)
	for i, key := range d.Keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('[')
		writeString(b, key)
		b.WriteByte(',')
		if err := c.write(b, d.Values[key], depth); err != nil {
			return err
		}
		b.WriteByte(']')
	}
	b.WriteString(`]}`)
	return nil
}

// writeInstance writes an instance and, while there is room, the known values of those attributes
// that Python usually reads of instances of its type.
func (c *codec) writeInstance(b *bytes.Buffer, i types.Instance, depth int) error {
	id := i.InstanceID()
	sent, known := c.sent[id]
	if !known {
		sent = map[string]bool{}
		c.sent[id] = sent
		c.instances[id] = i
	}
	fmt.Fprintf(b, `{"i":%d`, id)
	if !known {
		b.WriteString(`,"t":`)
		writeString(b, i.Entity().Name)
		if stand, is := i.(types.Stand); is {
			if made := stand.MadeOf(); made != 0 {
				fmt.Fprintf(b, `,"of":%d`, made)
			}
		}
	}
	if depth < aheadDepth && c.host.heap != nil {
		if err := c.writeKnown(b, i, sent, depth); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func (c *codec) writeKnown(b *bytes.Buffer, i types.Instance, sent map[string]bool, depth int) error {
	open := false
	var empty []string
	for _, name := range c.learned[i.Entity().Name] {
		if sent[name] {
			continue
		}
		if c.ahead <= 0 {
			break
		}
		read := c.host.heap.Attribute(i, name)
		if read.State != eval.Known && read.State != eval.Optional {
			continue
		}
		c.ahead--
		sent[name] = true
		if read.State == eval.Optional {
			empty = append(empty, name)
			continue
		}
		if open {
			b.WriteByte(',')
		} else {
			b.WriteString(`,"a":{`)
			open = true
		}
		writeString(b, name)
		b.WriteByte(':')
		if err := c.write(b, read.Value, depth+1); err != nil {
			return err
		}
	}
	if open {
		b.WriteByte('}')
	}
	for n, name := range empty {
		if n == 0 {
			b.WriteString(`,"e":[`)
		} else {
			b.WriteByte(',')
		}
		writeString(b, name)
	}
	if len(empty) > 0 {
		b.WriteByte(']')
	}
	return nil
}

func writeString(b *bytes.Buffer, s string) {
	b.Write(jsontext.AppendString(b.AvailableBuffer(), s))
}

func writeFloat(b *bytes.Buffer, f float64) {
	switch {
	case math.IsNaN(f):
		b.WriteString(`{"f":"nan"}`)
	case math.IsInf(f, 1):
		b.WriteString(`{"f":"inf"}`)
	case math.IsInf(f, -1):
		b.WriteString(`{"f":"-inf"}`)
	default:
		b.WriteString(floatText(f))
	}
}

// floatText writes a float, always with a fraction or an exponent.
func floatText(f float64) string {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	for i := range len(text) {
		if text[i] == '.' || text[i] == 'e' {
			return text
		}
	}
	return text + ".0"
}

// tagged is a value that JSON does not have.
type tagged struct {
	D         *[][2]json.RawMessage `json:"d"`
	I         uint64                `json:"i"`
	S         *int                  `json:"s"`
	U         uint64                `json:"u"`
	R         uint64                `json:"r"`
	O         uint64                `json:"o"`
	F         string                `json:"f"`
	C         *[2]string            `json:"c"`
	Type      string                `json:"type"`
	Of        string                `json:"of"`
	Args      [][2]json.RawMessage  `json:"args"`
	Class     string                `json:"class"`
	Base      json.RawMessage       `json:"base"`
	Shown     []string              `json:"shown"`
	Number    string                `json:"number"`
	Own       []string              `json:"own"`
	Dataclass []string              `json:"dataclass"`
	Fields    [][2]json.RawMessage  `json:"fields"`
}

// decode reads a value that the worker wrote.
func (c *codec) decode(raw json.RawMessage) (types.Value, error) {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > depthMax {
		return nil, fmt.Errorf("the worker sent a value nested deeper than %d", depthMax)
	}
	raw = bytes.TrimLeft(raw, " ")
	if len(raw) == 0 {
		return nil, fmt.Errorf("the worker sent no value")
	}
	switch raw[0] {
	case 'n':
		return types.Null{}, nil
	case 't':
		return types.Bool(true), nil
	case 'f':
		return types.Bool(false), nil
	case '"':
		if s, plain := jsontext.String(raw); plain {
			return types.Str(s), nil
		}
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return types.Str(s), nil
	case '[':
		return c.decodeList(raw)
	case '{':
		return c.decodeTagged(raw)
	}
	return decodeNumber(string(raw))
}

func decodeNumber(text string) (types.Value, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return types.Int(n), nil
	}
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return types.NewInt(n), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the worker sent %q for a number", text)
	}
	return types.Float(f), nil
}

func (c *codec) decodeList(raw json.RawMessage) (types.Value, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	list := &types.List{Items: make([]types.Value, len(items))}
	for i, item := range items {
		v, err := c.decode(item)
		if err != nil {
			return nil, err
		}
		list.Items[i] = v
	}
	return list, nil
}

func (c *codec) decodeTagged(raw json.RawMessage) (types.Value, error) {
	var t tagged
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, err
	}
	switch {
	case t.D != nil:
		return c.decodeDict(*t.D)
	case t.S != nil:
		if *t.S < 0 || *t.S >= len(c.byNumber) {
			return nil, fmt.Errorf("the worker names a value %d that was never sent", *t.S)
		}
		return c.byNumber[*t.S], nil
	case t.I != 0:
		i, ok := c.instances[t.I]
		if !ok {
			return nil, fmt.Errorf("the worker names an instance %d that was never sent", t.I)
		}
		return i, nil
	case t.U != 0:
		return types.Unknown{Number: t.U}, nil
	case t.R != 0:
		return c.decodeReference(t)
	case t.O != 0:
		return c.decodeObject(t)
	case t.F != "":
		f, err := strconv.ParseFloat(t.F, 64)
		return types.Float(f), err
	case t.C != nil:
		re, err := strconv.ParseFloat(t.C[0], 64)
		im, wrong := strconv.ParseFloat(t.C[1], 64)
		return types.Complex(complex(re, im)), errors.Join(err, wrong)
	}
	return nil, fmt.Errorf("the worker sent a value of no known kind: %.100s", raw)
}

func (c *codec) decodeDict(pairs [][2]json.RawMessage) (types.Value, error) {
	d := &types.Dict{Keys: make([]string, 0, len(pairs)), Values: make(map[string]types.Value, len(pairs))}
	for _, pair := range pairs {
		var key string
		if err := json.Unmarshal(pair[0], &key); err != nil {
			return nil, err
		}
		v, err := c.decode(pair[1])
		if err != nil {
			return nil, err
		}
		if _, twice := d.Values[key]; !twice {
			d.Keys = append(d.Keys, key)
		}
		d.Values[key] = v
	}
	return d, nil
}

func (c *codec) decodeReference(t tagged) (types.Value, error) {
	if known, ok := c.objects[t.R]; ok {
		if r, is := known.(*types.Reference); is && c.open[t.R] {
			return &types.Reference{Handle: r.Handle, Type: r.Type, Of: r.Of}, nil
		}
		return known, nil
	}
	r := &types.Reference{Handle: t.R, Type: t.Type, Of: t.Of}
	c.objects[t.R] = r
	args, err := c.decodeInside(t.R, t.Args)
	if err != nil {
		return nil, err
	}
	r.Args = args
	r.Fields, err = c.decodeArgs(t.Fields)
	return r, err
}

// decodeInside decodes the parts of a reference or an object. In Python such an object may be part
// of itself, but the engine's values are trees: inside itself it has no parts.
func (c *codec) decodeInside(handle uint64, pairs [][2]json.RawMessage) ([]types.ReferenceArg, error) {
	c.open[handle] = true
	defer delete(c.open, handle)
	return c.decodeArgs(pairs)
}

func (c *codec) decodeArgs(pairs [][2]json.RawMessage) ([]types.ReferenceArg, error) {
	var args []types.ReferenceArg
	for _, pair := range pairs {
		var name string
		if err := json.Unmarshal(pair[0], &name); err != nil {
			return nil, err
		}
		v, err := c.decode(pair[1])
		if err != nil {
			return nil, err
		}
		args = append(args, types.ReferenceArg{Name: name, Value: v})
	}
	return args, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Encode writes a value for a request of package export, with the known values of the attributes
// that Expect named.
func (h *Host) Encode(v types.Value, heap eval.Heap) (json.RawMessage, error) {
	h.heap = heap
	defer func() { h.heap = nil }()
	h.wire.begin()
	b := &bytes.Buffer{}
	err := h.wire.encode(b, v)
	return b.Bytes(), err
}

// Expect says that Python will read attributes of instances of an entity.
func (h *Host) Expect(entity *types.Entity, names ...string) {
	for _, name := range names {
		h.wire.learn(entity.Name, name)
	}
}
