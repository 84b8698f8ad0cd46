package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/eval"
)

// Call implements eval.Host.
func (h *Host) Call(call eval.PluginCall, heap eval.Heap) eval.Outcome {
	index, ok := h.plugins[call.Plugin]
	if !ok {
		return failed("RuntimeError", fmt.Sprintf("plug-in %s is not loaded", call.Plugin.Name))
	}
	h.use(call.Plugin.Name)
	if err := h.awake(); err != nil {
		return h.broken(call.Plugin, err)
	}
	if h.heap == nil {
		h.settle()
		h.slots = h.slots[:0]
	} else { // a call that another one causes, by the condition of a typedef: its slots follow
		defer func(before []eval.Slot) { h.slots = before }(h.slots)
		h.slots = nil
	}
	defer func(before eval.Heap) { h.heap = before }(h.heap)
	h.heap = heap
	var reply callReply
	b := &bytes.Buffer{}
	err := h.writeCall(b, index, call, !h.introduced[index])
	if err == nil {
		var raw json.RawMessage
		if err = h.request("call", json.RawMessage(b.Bytes()), &raw, "plug-in "+call.Plugin.Name); err == nil {
			err = reply.read(raw)
		}
	}
	if err != nil {
		return h.broken(call.Plugin, err)
	}
	return h.outcome(index, &reply)
}

// callReply is the reply to a call.
type callReply struct {
	V     json.RawMessage `json:"v"`
	Unset []int           `json:"unset"`
	Err   *exception      `json:"err"`
	Out   []string        `json:"out"`
	Warn  []string        `json:"warn"`
	// Checked: the value has been checked against the declared type.
	Checked bool `json:"checked"`
}

// read parses a reply. Most have only a value.
func (r *callReply) read(raw json.RawMessage) error {
	if v, is := bytes.CutPrefix(raw, []byte(`{"v":`)); is {
		if v, ends := bytes.CutSuffix(v, []byte("}")); ends && json.Valid(v) {
			r.V = v
			return nil
		}
	}
	if err := json.Unmarshal(raw, r); err != nil {
		return fmt.Errorf("plugin: the reply to a call: %w", err)
	}
	return nil
}

// outcome makes an outcome of a reply.
func (h *Host) outcome(index int, reply *callReply) eval.Outcome {
	h.introduced[index] = h.introduced[index] || reply.Err == nil
	outcome := eval.Outcome{Output: reply.Out, Deprecated: reply.Warn, Checked: reply.Checked}
	if len(h.pending) > 0 {
		outcome.Output = append(h.TakeOutput(), reply.Out...)
	}
	switch {
	case reply.Err != nil:
		e := reply.Err.pluginError()
		outcome.Err = &e
	case reply.Unset != nil:
		for _, slot := range reply.Unset {
			if slot < 0 || slot >= len(h.slots) {
				return failed("RuntimeError", "the plug-in waits for a variable that it did not read in this call")
			}
			outcome.Unset = append(outcome.Unset, h.slots[slot])
		}
	default:
		var err error
		if outcome.Value, err = h.wire.decode(reply.V); err != nil {
			outcome.Err = &eval.PluginError{Kind: "external", Class: "TypeError", Message: err.Error()}
		}
	}
	return outcome
}

// writeCall writes the arguments of the request "call". introduce: with the signature, because the
// worker does not know the plug-in yet.
func (h *Host) writeCall(b *bytes.Buffer, index int, call eval.PluginCall, introduce bool) error {
	h.wire.begin()
	b.WriteString(`{"p":`)
	b.WriteString(strconv.Itoa(index))
	b.WriteString(`,"a":[`)
	for i, arg := range call.Args {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := h.wire.encode(b, arg); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	if introduce {
		b.WriteString(`,"sig":`)
		b.Write(h.raw[index])
		if len(h.table.Dataclasses) > 0 { // the text of a parameter's type may name their entities
			b.WriteString(`,"twins":[`)
			first := true
			for _, d := range h.table.Dataclasses {
				if d.Plain {
					continue
				}
				if !first {
					b.WriteByte(',')
				}
				first = false
				writeString(b, d.Name)
			}
			b.WriteByte(']')
		}
	}
	if len(call.Named) > 0 {
		b.WriteString(`,"k":`)
		if err := h.named(b, call.Named); err != nil {
			return err
		}
	}
	if call.Direct {
		b.WriteString(`,"direct":true`)
	}
	if call.Namespace != "" {
		b.WriteString(`,"ns":`)
		writeString(b, call.Namespace)
	}
	if at := call.At; at.File != nil {
		b.WriteString(`,"at":[`)
		writeString(b, at.File.Path)
		fmt.Fprintf(b, ",%d,%d,%d,%d]", at.Start.Line, at.Start.Col, at.End.Line, at.End.Col)
	}
	b.WriteByte('}')
	return nil
}

func (h *Host) named(b *bytes.Buffer, named []eval.NamedValue) error {
	b.WriteByte('{')
	for i, one := range named {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, one.Name)
		b.WriteByte(':')
		if err := h.wire.encode(b, one.Value); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// broken is the outcome of a call whose worker died or did not start.
func (h *Host) broken(s *eval.Signature, err error) eval.Outcome {
	var hang *HangError
	if errors.As(err, &hang) {
		return eval.Outcome{
			Output: h.TakeOutput(),
			Err: &eval.PluginError{
				Kind:    "external",
				Class:   "TimeoutError",
				Message: hang.Error(),
				File:    s.File,
				Line:    s.Line,
				Trace:   hang.Stack,
			},
		}
	}
	o := failed("RuntimeError", strings.TrimSpace(err.Error()))
	o.Err.File, o.Err.Line, o.Output = s.File, s.Line, h.TakeOutput()
	return o
}

func failed(class, message string) eval.Outcome {
	return eval.Outcome{Err: &eval.PluginError{Kind: "external", Class: class, Message: message}}
}
