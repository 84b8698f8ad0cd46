package syntax

import "testing"

// yaccAction is what goyacc's parser does in a state: a shift to state n-1, a
// reduction by rule -n, or 0 for an error. Rules are numbered as in grammar.
func yaccAction(state, kind int) int {
	token := yyTokenNumber(kind)
	if n := int(yyPact[state]); n > yyFlag {
		if n += token; n >= 0 && n < yyLast {
			if n = int(yyAct[n]); int(yyChk[n]) == token {
				return n + 1
			}
		}
	}
	n := int(yyDef[state])
	if n != -2 {
		return -n
	}
	i := 0
	for int(yyExca[i]) != -1 || int(yyExca[i+1]) != state {
		i += 2
	}
	for i += 2; int(yyExca[i]) >= 0 && int(yyExca[i]) != token; i += 2 {
	}
	if n = int(yyExca[i+1]); n < 0 {
		return -acceptRule - 1000
	}
	return -n
}

func yyTokenNumber(kind int) int {
	switch {
	case kind == 0:
		return int(yyTok1[0])
	case kind < len(yyTok1):
		return int(yyTok1[kind])
	case kind >= yyPrivate:
		return int(yyTok2[kind-yyPrivate])
	}
	return 0
}

func yaccJump(state, left int) int {
	n := int(yyPgo[left])
	j := n + state + 1
	if j < yyLast {
		if to := int(yyAct[j]); int(yyChk[to]) == -left {
			return to
		}
	}
	return int(yyAct[n])
}

// The generated parser and the exact tables must go the same way on every
// token that the exact ones accept: then both accept the same files and build
// the same trees, and only errors need the judge. Walk both at once, state by
// state, from the first.
func TestGeneratedParserAgreesWithExactTables(t *testing.T) {
	e := exact()
	kindOf := map[int]int{}
	for kind, n := range e.kinds {
		kindOf[n] = kind
	}
	if len(kindOf) != e.terminals {
		t.Fatalf("%d of %d terminals have a token", len(kindOf), e.terminals)
	}
	type pair struct{ exact, yacc int }
	seen := map[pair]bool{{0, 0}: true}
	queue := []pair{{0, 0}}
	visit := func(p pair) {
		if !seen[p] {
			seen[p] = true
			queue = append(queue, p)
		}
	}
	compared := 0
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for x, action := range e.action[p.exact] {
			if action == 0 {
				continue
			}
			compared++
			got := yaccAction(p.yacc, kindOf[x])
			switch {
			case action > 0 && got > 0:
				visit(pair{int(action - 1), got - 1})
			case action == -acceptRule-1:
				if got != -1000 {
					t.Errorf("states %v: no end of the text: %d", p, got)
				}
			case action < 0 && -got == int(-action-1): // both count the rules from 1, after $accept
			default:
				t.Errorf("states %v on %s: exact %d, generated %d", p, e.names[x], action, got)
			}
		}
		for left := e.terminals; left < len(e.names); left++ {
			if to := int(e.jump[p.exact][left]); to != 0 {
				rule := e.byLeft[left][0]
				if rule == acceptRule {
					continue
				}
				visit(pair{to, yaccJump(p.yacc, int(yyR1[rule]))})
			}
		}
	}
	if compared < 5000 {
		t.Errorf("only %d entries compared", compared)
	}
	t.Logf("%d pairs of states, %d entries", len(seen), compared)
}
