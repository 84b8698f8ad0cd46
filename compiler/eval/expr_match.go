package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// matching is a regular expression as a part of another expression: whether the
// text that `self` is here begins with it.
type matching struct {
	at
	text    expr // self
	pattern *types.Regex
	source  string
}

func (b *builder) matching(x *syntax.Regex) expr {
	compiled, err := types.NewRegex(x.Pattern)
	if err != nil {
		b.failAt(runtimeError("%s", err), x.At)
		return &literal{standing(x), null}
	}
	self := b.ref(&syntax.Ref{Name: syntax.Name{Text: "self", At: x.At}})
	return &matching{standing(x), self, compiled, x.Pattern}
}

func (n *matching) layout(l *layouter) { n.text.layout(l) }

func (r *run) evalMatching(n *matching, s *scope, f frame) (types.Value, *Error) {
	v, err := r.eval(n.text, s, f)
	if err != nil || isUnknown(v) {
		return v, err
	}
	text, ok := v.(types.Str)
	if !ok {
		return nil, fail(
			"TypingException",
			"Regex can only be match with strings. %s is of type %s",
			types.Text(v),
			pythonClass(v),
		).in(n)
	}
	yes, long := n.pattern.Match(string(text))
	if long != nil {
		e := runtimeError("the regular expression /%s/ takes too long: %s", n.source, long)
		return nil, e.in(n).hinted(slowRegex)
	}
	return types.Bool(yes), nil
}

// slowRegex is what to do about an expression that tries very many ways.
const slowRegex = "repetitions inside of repetitions, such as (a+)+, try very many ways: write each part so that it can match in one way only"
