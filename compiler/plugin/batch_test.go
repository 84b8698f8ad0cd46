package plugin

import (
	"slices"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
)

const several = `
-- t/plugins/__init__.py --
import os
import time
from inmanta.plugins import plugin
from inmanta.ast import type as types

done = []

@plugin
def double(n: "int") -> "int":
    done.append(n)
    print("double", n)
    if n == 3:
        raise Exception("three")
    if n == 4:
        return "four"
    if n == 5:
        os._exit(3)
    if n == 6:
        time.sleep(60)
    return 2 * n

@plugin
def size(d: "dict") -> "int":
    return len(d)

@plugin
def checked(text: "string") -> "bool":
    return types.parse("t::short").validate(text)

@plugin
def seen() -> "list":
    return done
`

// posting posts calls of one plug-in.
func (p *project) posting(name string, args ...types.Value) {
	p.t.Helper()
	var calls []eval.PluginCall
	var heaps []eval.Heap
	for _, arg := range args {
		calls = append(calls,
			eval.PluginCall{Plugin: p.plugins[name], Args: []types.Value{arg}, Namespace: "__config__"})
		heaps = append(heaps, p.heap)
	}
	if !p.host.Post(calls, heaps) {
		p.t.Fatal("nothing was posted")
	}
}

func (p *project) seen(want ...types.Value) {
	p.t.Helper()
	if got := p.value("t::seen").(*types.List); !slices.Equal(got.Items, want) {
		p.t.Errorf("calls ran with %v, want %v", got.Items, want)
	}
}

// Posted calls run in order, each with its own outcome and output.
func TestPostedCalls(t *testing.T) {
	p := open(t, several)
	p.posting("t::double", types.Int(1), types.Int(2), types.Int(7))
	for n, want := range []types.Int{2, 4, 14} {
		out := p.host.Next()
		if out.Value != want || len(out.Output) != 1 {
			t.Errorf("outcome %d: %+v", n, out)
		}
	}
	p.seen(types.Int(1), types.Int(2), types.Int(7))
}

// A request between them does not affect their outcomes.
func TestPostedCallsWaitForTheirTurn(t *testing.T) {
	p := open(t, several)
	p.posting("t::double", types.Int(1), types.Int(2))
	p.seen(types.Int(1), types.Int(2))
	for _, want := range []types.Int{2, 4} {
		if out := p.host.Next(); out.Value != want || out.Output[0] == "" {
			t.Errorf("got %+v, want %d", out, want)
		}
	}
}

// Calls after a call that fails, or that returns a value of the wrong type, do not run. The
// engine decides whether they run later.
func TestPostedCallsStopAtTheFirstThatFails(t *testing.T) {
	for _, odd := range []types.Int{3, 4} {
		p := open(t, several)
		p.posting("t::double", types.Int(1), odd, types.Int(2))
		if out := p.host.Next(); out.Value != types.Int(2) {
			t.Errorf("first: %+v", out)
		}
		if out := p.host.Next(); (out.Err == nil) == (odd == 3) || out.Err == nil && out.Value != types.Str("four") {
			t.Errorf("second: %+v", out)
		}
		p.seen(types.Int(1), odd)
		if out := p.host.Next(); out.Value != types.Int(4) {
			t.Errorf("third, which is called now: %+v", out)
		}
		p.seen(types.Int(1), odd, types.Int(2))
	}
}

// A worker that dies or hangs in one call does not affect the outcomes of those before.
func TestPostedCallsOfAWorkerThatEnds(t *testing.T) {
	for _, end := range []types.Int{5, 6} {
		p, err := tryOpen(t, several, func(c *Config) { c.CallTimeout = 500 * time.Millisecond })
		if err != nil {
			t.Fatal(err)
		}
		p.posting("t::double", types.Int(1), end, types.Int(2))
		if out := p.host.Next(); out.Value != types.Int(2) {
			t.Errorf("first: %+v", out)
		}
		class := map[types.Int]string{5: "RuntimeError", 6: "TimeoutError"}[end]
		if out := p.host.Next(); out.Err == nil || out.Err.Class != class || out.Err.File == "" {
			t.Errorf("second: %+v", out.Err)
		}
		if out := p.host.Next(); out.Err == nil {
			t.Errorf("third: %+v", out)
		}
	}
}

// A dict that was sent with a call that did not run is known in later calls.
func TestPostedCallsShareValues(t *testing.T) {
	p := open(t, several)
	d := &types.Dict{Keys: []string{"k"}, Values: map[string]types.Value{"k": types.Str("v")}}
	calls := []eval.PluginCall{
		{Plugin: p.plugins["t::double"], Args: []types.Value{types.Int(3)}},
		{Plugin: p.plugins["t::size"], Args: []types.Value{d}},
	}
	if !p.host.Post(calls, []eval.Heap{p.heap, p.heap}) {
		t.Fatal("nothing was posted")
	}
	if out := p.host.Next(); out.Err == nil {
		t.Errorf("first: %+v", out)
	}
	if got := p.value("t::size", d); got != types.Int(1) {
		t.Errorf("size: %v", got)
	}
	if out := p.host.Next(); out.Value != types.Int(1) {
		t.Errorf("second: %+v", out)
	}
	p.posting("t::double", types.Int(1), types.Int(2))
	p.posted(2)
}

func (p *project) posted(n int) {
	p.t.Helper()
	for range n {
		if out := p.host.Next(); out.Err != nil {
			p.t.Errorf("outcome: %+v", out.Err)
		}
	}
}
