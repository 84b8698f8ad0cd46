package plugin

import (
	"bytes"
	"context"
	"encoding/json"

	"ordain.dev/ordain/compiler/eval"
)

var _ eval.BatchHost = (*Host)(nil)

// posted are calls that were sent to the worker together.
type posted struct {
	calls    []eval.PluginCall // whose outcome Next has not returned yet
	heaps    []eval.Heap
	outcomes []eval.Outcome // of the first of them, already received
	open     bool           // the worker may send more outcomes
}

// Post implements eval.BatchHost. Next reports any error.
func (h *Host) Post(calls []eval.PluginCall, heaps []eval.Heap) bool {
	if h.awake() != nil {
		return false
	}
	h.settle()
	if len(h.posted.calls) > 0 { // Next has not returned all of those yet
		return false
	}
	b := &bytes.Buffer{}
	b.WriteString(`{"calls":[`)
	introducedNow := map[int]bool{}
	for n, call := range calls {
		index, ok := h.plugins[call.Plugin]
		if !ok {
			return false
		}
		if n > 0 {
			b.WriteByte(',')
		}
		if h.writeCall(b, index, call, !h.introduced[index] && !introducedNow[index]) != nil {
			return false
		}
		introducedNow[index] = true
		h.use(call.Plugin.Name)
	}
	b.WriteString(`]}`)
	h.posted = posted{calls: calls, heaps: heaps}
	h.posted.open = h.guarded("plug-in "+calls[0].Plugin.Name, func(ctx context.Context) error {
		return h.dialogue.Post(ctx, "calls", json.RawMessage(b.Bytes()))
	}) == nil
	return true
}

// Next implements eval.BatchHost.
func (h *Host) Next() eval.Outcome {
	p := &h.posted
	if len(p.outcomes) == 0 && p.open {
		h.receive()
	}
	call, heap := p.calls[0], p.heaps[0]
	if p.calls, p.heaps = p.calls[1:], p.heaps[1:]; len(p.calls) == 0 {
		p.calls, p.heaps = nil, nil // the last heap would keep the whole model in memory
	}
	if len(p.outcomes) == 0 { // the worker stopped before this one
		return h.Call(call, heap)
	}
	out := p.outcomes[0]
	p.outcomes = p.outcomes[1:]
	if out.Err != nil && len(p.calls) == 0 {
		h.settle()
	}
	return out
}

// receive reads the next outcome.
func (h *Host) receive() {
	p := &h.posted
	n := len(p.outcomes)
	if n == len(p.calls) { // only the end of the reply is missing
		p.open = false
		_ = h.guarded("a plug-in", func(ctx context.Context) error {
			_, err := h.dialogue.Result(ctx, &callReply{}, h.answer)
			return err
		})
		return
	}
	call := p.calls[n]
	defer func(before eval.Heap) { h.heap = before }(h.heap)
	h.heap, h.slots = p.heaps[n], h.slots[:0]
	var reply callReply
	more, err := h.result(call.Plugin.Name, &reply)
	switch {
	case err != nil:
		p.open = false
		p.outcomes = append(p.outcomes, h.broken(call.Plugin, err))
	case !more:
		p.open = false
	default:
		p.outcomes = append(p.outcomes, h.outcome(h.plugins[call.Plugin], &reply))
	}
}

// result reads the reply to a call. A reply that has already arrived needs no timeout.
func (h *Host) result(name string, reply *callReply) (more bool, err error) {
	var raw json.RawMessage
	read := func(ctx context.Context) (err error) {
		more, err = h.dialogue.Result(ctx, &raw, h.answer)
		return err
	}
	if h.dialogue.HasResult() {
		err = read(h.alive)
		h.settlePrinted(err)
	} else {
		err = h.guarded("plug-in "+name, read)
	}
	if err == nil && more {
		err = reply.read(raw)
	}
	return more, err
}

// settle receives all outstanding outcomes of calls that were posted.
func (h *Host) settle() {
	for h.posted.open {
		h.receive()
	}
}
