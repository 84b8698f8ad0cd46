package syntax

import (
	_ "embed"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// The reference's parse tables have an entry for each token that may follow, so that its parser
// notices an error at once. goyacc's tables are smaller: a state may reduce by default, whatever
// follows, and the error is noticed a little later, with another symbol on the stack or after a
// check that should not have run. Both accept the same files. Only when a file is refused are the
// exact tables built from the same grammar, and the judge (judge.go) finds the first error.

//go:embed grammar.y
var grammarText string

// grammar is grammar.y without its actions. Symbols are numbers: terminals
// first, of which 0 is the end of the text.
type grammar struct {
	names     []string
	terminals int
	rules     []rule
	byLeft    [][]int // rules of each symbol
	first     []uint64
	nullable  []bool
	level     []int  // precedence of terminals; 0: none
	assoc     []byte // r, l or n(one)
}

type rule struct {
	left  int
	right []int
	level int
	assoc byte
}

// Actions: 0 is an error, a positive number shifts to state n-1, a negative
// one reduces by rule -n-1.
type exactTables struct {
	*grammar
	action [][]int16
	jump   [][]int16
	// alone is the action of a state that has only one: the reference takes it without
	// looking at the next token.
	alone []int16
	kinds map[int]int // token kind to terminal
}

const acceptRule = 0

var exact = sync.OnceValue(func() *exactTables {
	g := readGrammar(grammarText)
	t := g.build()
	t.kinds = map[int]int{0: 0}
	kind := tINT // goyacc numbers the named tokens on from the first
	for _, name := range yyToknames[slices.Index(yyToknames[:], "tINT"):] {
		k := kind
		if name[0] == '\'' {
			k = int(name[1])
		} else {
			kind++
		}
		t.kinds[k] = slices.Index(g.names, name)
	}
	return t
})

// readGrammar reads the part of yacc's format that grammar.y uses.
func readGrammar(text string) *grammar {
	head, body, _ := strings.Cut(text, "\n%%\n")
	g := &grammar{names: []string{"$end"}, level: []int{0}, assoc: []byte{'r'}}
	symbols := map[string]int{"$end": 0}
	level := 0
	for line := range strings.SplitSeq(head, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || !slices.Contains([]string{"%left", "%right", "%nonassoc"}, words[0]) {
			continue
		}
		for _, w := range words[1:] {
			if w[0] == '<' {
				continue
			}
			symbols[w] = len(g.names)
			g.names = append(g.names, w)
			g.level = append(g.level, level)
			g.assoc = append(g.assoc, words[0][1])
		}
		level++
	}
	g.terminals = len(g.names)
	symbol := func(name string) int {
		n, ok := symbols[name]
		if !ok {
			n = len(g.names)
			symbols[name] = n
			g.names = append(g.names, name)
		}
		return n
	}
	g.rules = []rule{{left: symbol("$accept"), right: []int{symbol("main")}, assoc: 'r'}}
	words := ruleWords(body)
	for i := 0; i < len(words); {
		left := symbol(words[i])
		for i++; ; { // at the colon or a bar
			r := rule{left: left, assoc: 'r'}
			given := -1
			for i++; i < len(words) && words[i] != "|" && (i+1 == len(words) || words[i+1] != ":"); i++ {
				if words[i] == "%prec" {
					i++
					given = symbol(words[i])
					continue
				}
				s := symbol(words[i])
				if s < g.terminals {
					r.level, r.assoc = g.level[s], g.assoc[s]
				}
				r.right = append(r.right, s)
			}
			if given >= 0 {
				r.level, r.assoc = g.level[given], g.assoc[given]
			}
			g.rules = append(g.rules, r)
			if i == len(words) || words[i] != "|" {
				break
			}
		}
	}
	g.byLeft = make([][]int, len(g.names))
	for i, r := range g.rules {
		g.byLeft[r.left] = append(g.byLeft[r.left], i)
	}
	g.findFirst()
	return g
}

// ruleWords splits the rules into words and drops the actions.
func ruleWords(body string) []string {
	var words []string
	for i := 0; i < len(body); {
		c := body[i]
		switch {
		case c == '\'':
			words = append(words, body[i:i+3])
			i += 3
		case c == '{':
			for depth := 0; ; i++ {
				if body[i] == '{' {
					depth++
				} else if body[i] == '}' {
					depth--
				}
				if depth == 0 {
					break
				}
			}
			i++
		case c == ':' || c == '|':
			words = append(words, string(c))
			i++
		case isLetter(c) || c == '%':
			end := i + 1
			for end < len(body) && (isLetter(body[end]) || isDigit(body[end])) {
				end++
			}
			words = append(words, body[i:end])
			i = end
		default:
			i++
		}
	}
	return words
}

func (g *grammar) findFirst() {
	g.first = make([]uint64, len(g.names))
	g.nullable = make([]bool, len(g.names))
	for i := range g.terminals {
		g.first[i] = 1 << i
	}
	for changed := true; changed; {
		changed = false
		for _, r := range g.rules {
			set, empty := g.firstOf(r.right)
			if g.first[r.left]|set != g.first[r.left] || empty && !g.nullable[r.left] {
				g.first[r.left] |= set
				g.nullable[r.left] = g.nullable[r.left] || empty
				changed = true
			}
		}
	}
}

func (g *grammar) firstOf(symbols []int) (set uint64, empty bool) {
	for _, s := range symbols {
		set |= g.first[s]
		if !g.nullable[s] {
			return set, false
		}
	}
	return set, true
}

// item is a rule with a dot in it, and the terminals that may follow the rule.
type item struct {
	rule, dot int
	follow    uint64
}

type lrState struct {
	kernel []item
	next   map[int]int // by symbol
	queued bool
}

// build makes the LALR(1) automaton: lookaheads propagate from state to state until nothing
// changes.
func (g *grammar) build() *exactTables {
	states := []*lrState{{kernel: []item{{follow: 1}}, queued: true}}
	known := map[string]int{}
	queue := []int{0}
	for len(queue) > 0 {
		s := states[queue[0]]
		queue = queue[1:]
		s.queued = false
		type target struct{ kernel []item }
		targets := map[int]*target{}
		var order []int
		for _, it := range g.closure(s.kernel) {
			r := g.rules[it.rule]
			if it.dot == len(r.right) {
				continue
			}
			x := r.right[it.dot]
			if targets[x] == nil {
				targets[x] = &target{}
				order = append(order, x)
			}
			targets[x].kernel = append(targets[x].kernel, item{it.rule, it.dot + 1, it.follow})
		}
		if s.next == nil {
			s.next = make(map[int]int, len(order))
		}
		for _, x := range order {
			kernel := targets[x].kernel
			key := kernelKey(kernel)
			n, ok := known[key]
			if !ok {
				n = len(states)
				known[key] = n
				states = append(states, &lrState{kernel: kernel, queued: true})
				queue = append(queue, n)
			} else if states[n].merge(kernel) && !states[n].queued {
				states[n].queued = true
				queue = append(queue, n)
			}
			s.next[x] = n
		}
	}
	return g.tables(states)
}

// kernelKey identifies a state. The order of items matters: to the reference's generator the same
// items in another order are another state.
func kernelKey(kernel []item) string {
	key := make([]byte, 0, 3*len(kernel))
	for _, it := range kernel {
		key = append(key, byte(it.rule>>8), byte(it.rule), byte(it.dot))
	}
	return string(key)
}

func (s *lrState) merge(kernel []item) bool {
	changed := false
	for _, it := range kernel {
		for i := range s.kernel {
			k := &s.kernel[i]
			if k.rule == it.rule && k.dot == it.dot && k.follow|it.follow != k.follow {
				k.follow |= it.follow
				changed = true
			}
		}
	}
	return changed
}

// closure adds to the items the rules that may begin at a dot.
func (g *grammar) closure(kernel []item) []item {
	items := slices.Clone(kernel)
	at := map[int]int{} // index of a rule with the dot at its beginning
	for i := 0; i < len(items); i++ {
		if items[i].dot == 0 {
			at[items[i].rule] = i
		}
	}
	for changed := true; changed; {
		changed = false
		for i := 0; i < len(items); i++ {
			r := g.rules[items[i].rule]
			if items[i].dot == len(r.right) || r.right[items[i].dot] < g.terminals {
				continue
			}
			follow, empty := g.firstOf(r.right[items[i].dot+1:])
			if empty {
				follow |= items[i].follow
			}
			for _, n := range g.byLeft[r.right[items[i].dot]] {
				j, ok := at[n]
				if !ok {
					j = len(items)
					at[n] = j
					items = append(items, item{rule: n})
				}
				if items[j].follow|follow != items[j].follow || !ok {
					items[j].follow |= follow
					changed = true
				}
			}
		}
	}
	return items
}

// tables resolves conflicts as the reference's generator does: by precedence, then in favour of the
// shift; between two rules in favour of the earlier one.
func (g *grammar) tables(states []*lrState) *exactTables {
	t := &exactTables{grammar: g, alone: make([]int16, len(states))}
	for n, s := range states {
		action := make([]int16, g.terminals)
		jump := make([]int16, len(g.names))
		for x, to := range s.next {
			jump[x] = int16(to)
		}
		for _, it := range g.closure(s.kernel) {
			r := g.rules[it.rule]
			if it.dot < len(r.right) {
				if x := r.right[it.dot]; x < g.terminals {
					action[x] = g.shift(action[x], x, int16(s.next[x]+1))
				}
				continue
			}
			for follow := it.follow; follow != 0; follow &= follow - 1 {
				x := bits.TrailingZeros64(follow)
				action[x] = g.reduce(action[x], x, it.rule)
			}
		}
		entries := 0
		for _, a := range action {
			if a != 0 {
				entries++
				t.alone[n] = a
			}
		}
		if entries != 1 || t.alone[n] > 0 || t.alone[n] == -acceptRule-1 {
			t.alone[n] = 0
		}
		t.action = append(t.action, action)
		t.jump = append(t.jump, jump)
	}
	return t
}

func (g *grammar) shift(have int16, x int, shift int16) int16 {
	if have >= 0 {
		return shift
	}
	r := g.rules[-have-1]
	switch {
	case g.level[x] > r.level, g.level[x] == r.level && r.assoc == 'r':
		return shift
	case g.level[x] == r.level && r.assoc == 'n':
		return 0
	}
	return have
}

func (g *grammar) reduce(have int16, x, n int) int16 {
	reduce := int16(-n - 1)
	switch {
	case have == 0:
		return reduce
	case have < 0:
		return max(have, reduce)
	}
	r := g.rules[n]
	switch {
	case g.level[x] < r.level, g.level[x] == r.level && r.assoc == 'l':
		return reduce
	case g.level[x] == r.level && r.assoc == 'n':
		return 0
	}
	return have
}
