package eval_test

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
)

// testHost runs plug-ins that are Go functions, in namespace test.
type testHost struct {
	plugins   map[string]testPlugin
	order     []string
	finalized int
}

type testPlugin struct {
	sig *eval.Signature
	run func(call eval.PluginCall, heap eval.Heap) eval.Outcome
}

func prim(name string) *eval.Annotation {
	return &eval.Annotation{Kind: "prim", Name: name, Text: name}
}

func value(v types.Value) eval.Outcome { return eval.Outcome{Value: v} }

func raised(kind, class, message string) eval.Outcome {
	return eval.Outcome{Err: &eval.PluginError{Kind: kind, Class: class, Message: message, File: "plugins.py", Line: 7}}
}

func newTestHost() *testHost {
	h := &testHost{plugins: map[string]testPlugin{}}
	h.add(
		&eval.Signature{
			Name:   "test::upper",
			Params: []eval.Param{{Name: "value", Kind: eval.Positional, Type: prim("string")}},
			Return: prim("string"),
		},
		func(call eval.PluginCall, _ eval.Heap) eval.Outcome {
			return value(types.Str(strings.ToUpper(types.Text(call.Args[0]))))
		},
	)
	h.add(
		&eval.Signature{
			Name:   "test::print",
			Params: []eval.Param{{Name: "value", Kind: eval.Positional, Type: &eval.Annotation{Kind: "any"}}},
		},
		func(call eval.PluginCall, _ eval.Heap) eval.Outcome {
			return eval.Outcome{Value: types.Null{}, Output: []string{types.Text(call.Args[0])}}
		},
	)
	h.add(&eval.Signature{Name: "test::unknown", Return: &eval.Annotation{Kind: "any"}},
		func(eval.PluginCall, eval.Heap) eval.Outcome { return value(types.Unknown{}) })
	h.add(
		&eval.Signature{
			Name:         "test::is_unknown",
			AllowUnknown: true,
			Params:       []eval.Param{{Name: "value", Kind: eval.Positional, Type: &eval.Annotation{Kind: "any"}}},
		},
		func(call eval.PluginCall, _ eval.Heap) eval.Outcome {
			_, is := call.Args[0].(types.Unknown)
			return value(types.Bool(is))
		},
	)
	h.add(
		&eval.Signature{
			Name: "test::names",
			Params: []eval.Param{
				{
					Name: "of",
					Kind: eval.Positional,
					Type: &eval.Annotation{Kind: "list", Of: []*eval.Annotation{{Kind: "dsl", Name: "std::Entity"}}},
				},
			},
		},
		func(call eval.PluginCall, heap eval.Heap) eval.Outcome {
			var names []string
			for _, item := range call.Args[0].(*types.List).Items {
				read := heap.Attribute(item.(types.Instance), "name")
				if read.State == eval.Unset {
					return eval.Outcome{Unset: []eval.Slot{read.Slot}, Output: []string{"not yet"}}
				}
				names = append(names, types.Text(read.Value))
			}
			return value(types.Str(strings.Join(names, ",")))
		},
	)
	h.add(
		&eval.Signature{
			Name:   "test::variable",
			Params: []eval.Param{{Name: "name", Kind: eval.Positional, Type: prim("string")}},
		},
		func(call eval.PluginCall, heap eval.Heap) eval.Outcome {
			read := heap.Variable(types.Text(call.Args[0]))
			switch read.State {
			case eval.Unset:
				return eval.Outcome{Unset: []eval.Slot{read.Slot}}
			case eval.Missing:
				return value(types.Str("missing"))
			}
			return value(read.Value)
		},
	)
	h.add(
		&eval.Signature{
			Name:   "test::count",
			Params: []eval.Param{{Name: "type", Kind: eval.Positional, Type: prim("string")}},
			Return: prim("int"),
		},
		func(call eval.PluginCall, heap eval.Heap) eval.Outcome {
			return value(types.Int(len(heap.Instances(types.Text(call.Args[0])))))
		},
	)
	h.add(&eval.Signature{Name: "test::wrong", Return: prim("int")},
		func(eval.PluginCall, eval.Heap) eval.Outcome { return value(types.Str("no int")) })
	h.add(&eval.Signature{Name: "test::explicit"},
		func(eval.PluginCall, eval.Heap) eval.Outcome {
			return raised("plugin", "inmanta_plugins.test.Bad", "this is wrong")
		})
	h.add(&eval.Signature{Name: "test::crash"},
		func(eval.PluginCall, eval.Heap) eval.Outcome {
			return raised("external", "builtins.KeyError", "'x'")
		})
	h.add(&eval.Signature{Name: "test::old", Deprecated: true, ReplacedBy: "test::upper"},
		func(eval.PluginCall, eval.Heap) eval.Outcome { return value(types.Null{}) })
	h.add(&eval.Signature{Name: "test::many", Params: []eval.Param{
		{Name: "a", Kind: eval.Positional, Type: prim("int")},
		{
			Name:       "b",
			Kind:       eval.Positional,
			Type:       &eval.Annotation{Kind: "nullable", Of: []*eval.Annotation{prim("int")}},
			HasDefault: true,
		},
		{Name: "c", Kind: eval.KeywordOnly, Type: prim("string")},
	}}, func(call eval.PluginCall, _ eval.Heap) eval.Outcome {
		return value(types.Str(fmt.Sprint(len(call.Args), " ", len(call.Named))))
	})
	return h
}

func (h *testHost) add(sig *eval.Signature, run func(eval.PluginCall, eval.Heap) eval.Outcome) {
	h.plugins[sig.Name] = testPlugin{sig, run}
	h.order = append(h.order, sig.Name)
}

func (h *testHost) Load([]eval.ModuleCode) (*eval.Loaded, error) {
	l := &eval.Loaded{}
	for _, name := range h.order {
		l.Plugins = append(l.Plugins, h.plugins[name].sig)
	}
	return l, nil
}

func (h *testHost) Call(call eval.PluginCall, heap eval.Heap) eval.Outcome {
	return h.plugins[call.Plugin.Name].run(call, heap)
}

func (h *testHost) Finalize(eval.Heap) error {
	h.finalized++
	return nil
}
