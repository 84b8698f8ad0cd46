package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"

	"ordain.dev/ordain/compiler/types"
)

func (c *codec) decodeObject(t tagged) (types.Value, error) {
	if known, ok := c.objects[t.O]; ok {
		if o, is := known.(*types.Object); is && c.open[t.O] {
			hollow := *o
			return &hollow, nil
		}
		return known, nil
	}
	o := &types.Object{
		Handle:    t.O,
		Class:     t.Class,
		Shown:     t.Shown,
		Number:    t.Number,
		Own:       t.Own,
		Keeper:    c.host,
		Dataclass: t.Dataclass,
	}
	if t.Base != nil {
		base, err := c.decode(t.Base)
		if err != nil {
			return nil, err
		}
		switch base.(type) {
		case types.Str, types.Int, types.BigInt, types.Float:
			o.Base = base
		default: // an object may define it
			return nil, fmt.Errorf("the worker sent an object that is based on no string or number: %.100s", t.Base)
		}
	}
	c.objects[t.O] = o
	var err error
	o.Fields, err = c.decodeInside(t.O, t.Fields)
	return o, err
}

// Do implements types.Keeper.
func (h *Host) Do(o *types.Object, operation string, with types.Value) (types.Value, error) {
	b := &bytes.Buffer{}
	b.WriteString(`{"o":`)
	if err := h.wire.encode(b, o); err != nil {
		return nil, err
	}
	b.WriteString(`,"do":`)
	writeString(b, operation)
	if with != nil {
		b.WriteString(`,"with":`)
		if err := h.wire.encode(b, with); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	var reply struct {
		V     json.RawMessage `json:"v"`
		Error *struct {
			Class, Text string
		} `json:"error"`
	}
	if err := h.ask("do", json.RawMessage(b.Bytes()), &reply, operation+" of a "+o.Class); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, types.PythonError{Class: reply.Error.Class, Text: reply.Error.Text}
	}
	if reply.V == nil {
		return nil, nil
	}
	return h.wire.decode(reply.V)
}
