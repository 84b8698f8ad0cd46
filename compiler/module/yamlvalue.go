package module

import (
	"math"
	"math/big"
	"strings"
	"time"

	"ordain.dev/ordain/compiler/pyyaml"
)

// value is what a node of a YAML file means, in the reading of YAML 1.1: `yes` is
// true, 010 is eight, 1:30 is ninety, 2020-01-01 is a date, and `<<` merges.
type value struct {
	node *pyyaml.Node
	// is nil, bool, *big.Int, float64, string, []byte, time.Time, []value, *tuple,
	// *mapping, set or tangle. A string may hold halves of characters: see pyyaml.Node.
	is any
}

type (
	// mapping holds its keys in the order in which they were first there.
	mapping struct {
		keys, values []value
		at           map[any]int // by what a key is
	}
	// set holds its elements as keys.
	set struct{ *mapping }
	// tuple is an element of an ordered map, or of a list of pairs.
	tuple struct{ key, value value }
	// tangle stands in a collection in place of that collection itself.
	tangle struct{ is any }
)

// get finds the value of a text key; nil when there is none.
func (m *mapping) get(key string) *value {
	if i, ok := m.at[key]; ok {
		return &m.values[i]
	}
	return nil
}

// put sets the value of a key. The key that was there first stays.
func (m *mapping) put(key, v value) {
	hash := hashOf(key)
	if i, ok := m.at[hash]; ok {
		m.values[i] = v
		return
	}
	m.at[hash] = len(m.keys)
	m.keys, m.values = append(m.keys, key), append(m.values, v)
}

// What keys are equal by, where it is not the value itself.
type (
	intKey   string
	bytesKey string
	nanKey   struct{}
	timeKey  struct {
		kind     string
		seconds  int64
		fraction int
	}
)

// hashOf is what equal keys have in common: 1, 1.0 and true are one key.
func hashOf(key value) any {
	switch is := key.is.(type) {
	case bool:
		if is {
			return float64(1)
		}
		return float64(0)
	case *big.Int:
		if f, exact := new(big.Float).SetInt(is).Float64(); exact == big.Exact {
			return f
		}
		return intKey(is.String())
	case float64:
		switch {
		case !math.IsNaN(is):
			return is
		case strings.HasSuffix(oldDigits(key.node.Target().Value), ".nan"): // all are one object of Python
			return nanKey{}
		}
		return key.node.Target()
	case []byte:
		return bytesKey(is)
	case time.Time:
		return timeKey{kindOf(is), is.Unix(), is.Nanosecond()}
	}
	return key.is
}
