package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// clusters answers what the module ordain asks.
func (h *Host) clusters(args json.RawMessage) (any, error) {
	var request struct {
		Name *string `json:"n"`
	}
	if err := json.Unmarshal(args, &request); err != nil {
		return nil, err
	}
	return h.config.Clusters.answer(request.Name), nil
}

// answer implements worker.Handler: it answers what Python asks while a request runs.
func (h *Host) answer(op string, args json.RawMessage) (any, error) {
	if h.onAnswer != nil {
		h.onAnswer(op)
	}
	if op == "clusters" {
		return h.clusters(args)
	}
	if h.heap == nil || op == "imports" || op == "module" {
		return h.unanswered(op, args)
	}
	var request struct {
		Instance uint64          `json:"i"`
		Name     string          `json:"n"`
		Also     []uint64        `json:"also"`
		Value    json.RawMessage `json:"v"`
	}
	if err := json.Unmarshal(args, &request); err != nil {
		return nil, err
	}
	h.wire.begin()
	switch op {
	case "read":
		instance, ok := h.wire.instances[request.Instance]
		if !ok {
			return nil, fmt.Errorf("instance %d was never sent", request.Instance)
		}
		return h.read(instance, request.Name, request.Also)
	case "variable":
		b := &bytes.Buffer{}
		err := h.writeRead(b, h.heap.Variable(request.Name))
		b.WriteByte('}')
		return json.RawMessage(b.Bytes()), err
	case "instances":
		items := []types.Value{}
		for _, i := range h.heap.Instances(request.Name) {
			items = append(items, i)
		}
		b := &bytes.Buffer{}
		err := h.wire.writeItems(b, items, 0)
		return json.RawMessage(b.Bytes()), err
	case "type":
		return describe(h.heap.Type(request.Name), request.Name), nil
	case "types":
		if all, ok := h.heap.(interface{ TypeNames() []string }); ok {
			return all.TypeNames(), nil
		}
		return []string{}, nil
	case "plugins":
		return h.pluginNames(), nil
	case "defaults":
		return h.defaults(request.Name)
	case "owner":
		return h.owner()
	case "fits":
		v, err := h.wire.decode(request.Value)
		if err != nil {
			return nil, err
		}
		return h.checkResult(request.Name, v), nil
	case "accepts":
		v, err := h.wire.decode(request.Value)
		if err != nil {
			return nil, err
		}
		return h.accepts(request.Name, v), nil
	case "origin":
		return origin(h.wire.instances[request.Instance]), nil
	}
	return nil, fmt.Errorf("the compiler does not know %q", op)
}

// read returns the value of one attribute, and those values of the same attribute that are known of
// the other instances over which Python iterates.
func (h *Host) read(instance types.Instance, name string, also []uint64) (any, error) {
	c := h.wire
	b := &bytes.Buffer{}
	read := h.heap.Attribute(instance, name)
	if read.State != eval.Missing {
		c.learn(instance.Entity().Name, name)
	}
	if read.State == eval.Known || read.State == eval.Optional {
		c.sent[instance.InstanceID()][name] = true
	}
	if err := h.writeRead(b, read); err != nil {
		return nil, err
	}
	b.WriteString(`,"know":[`)
	if err := c.writeInstance(b, instance, 0); err != nil {
		return nil, err
	}
	for _, id := range also {
		other, ok := c.instances[id]
		if !ok || c.ahead <= 0 {
			continue
		}
		if read.State != eval.Missing {
			c.learn(other.Entity().Name, name)
		}
		b.WriteByte(',')
		if err := c.writeInstance(b, other, 0); err != nil {
			return nil, err
		}
	}
	b.WriteString(`]}`)
	return json.RawMessage(b.Bytes()), nil
}

// writeRead writes the outcome of a read, without the closing brace.
func (h *Host) writeRead(b *bytes.Buffer, read eval.Read) error {
	switch read.State {
	case eval.Known:
		b.WriteString(`{"v":`)
		return h.wire.encode(b, read.Value)
	case eval.Unset:
		h.slots = append(h.slots, read.Slot)
		b.WriteString(`{"slot":` + strconv.Itoa(len(h.slots)-1))
	case eval.Optional:
		b.WriteString(`{"optional":true`)
	default:
		b.WriteString(`{"missing":true`)
	}
	return nil
}

// accepts reports whether a value is of a type, whose name has [] for lists and ? for null.
func (h *Host) accepts(name string, v types.Value) bool {
	if inner, ok := strings.CutSuffix(name, "?"); ok {
		_, null := v.(types.Null)
		return null || h.accepts(inner, v)
	}
	if inner, ok := strings.CutSuffix(name, "[]"); ok {
		list, isList := v.(*types.List)
		if !isList {
			return false
		}
		for _, item := range list.Items {
			if !h.accepts(inner, item) {
				return false
			}
		}
		return true
	}
	t, ok := h.heap.Type(name).(types.Type)
	if !ok {
		p, known := types.LookupPrimitive(name)
		if !known {
			return false
		}
		t = p
	}
	return t.Validate(v) == nil
}

// wrongResult says why a value is not of the type that a plug-in declares.
type wrongResult struct {
	Class   string         `json:"class"` // the reference's, without its module
	Message string         `json:"message"`
	Foreign bool           `json:"foreign"` // the condition of a typedef raised a Python exception
	Type    string         `json:"type"`    // the declared type
	Causes  []*wrongResult `json:"causes"`
}

// checkResult checks the result of a plug-in that Python called against its declared type; nil when
// it is right.
func (h *Host) checkResult(plugin string, v types.Value) *wrongResult {
	heap, is := h.heap.(interface {
		CheckResult(plugin string, v types.Value) (declared string, err *eval.Error)
	})
	if !is { // during an export nothing checks it
		return nil
	}
	declared, err := heap.CheckResult(plugin, v)
	if err == nil {
		return nil
	}
	return wrong(err, declared)
}

func wrong(err *eval.Error, declared string) *wrongResult {
	w := &wrongResult{Class: err.Kind, Message: err.Message, Foreign: err.Foreign(), Type: declared}
	for _, cause := range err.Causes {
		w.Causes = append(w.Causes, wrong(cause, ""))
	}
	return w
}

// origin is where an instance was made.
func origin(i types.Instance) []place {
	at, ok := i.(interface{ At() syntax.Span })
	if !ok {
		return []place{}
	}
	span := at.At()
	if span.File == nil {
		return []place{}
	}
	return []place{{File: span.File.Path, Line: int(span.Start.Line)}}
}
