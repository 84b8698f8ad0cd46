package modeldoc

import (
	"strconv"
	"strings"
	"testing"
)

func numbers() func(b []byte, from, to int) []byte {
	return func(b []byte, from, to int) []byte {
		for n := from; n < to; n++ {
			b = append(strconv.AppendInt(b, int64(n), 10), ' ')
		}
		return b
	}
}

// However many entries there are, they come in order and each once.
func TestTurnsComeInOrder(t *testing.T) {
	for _, n := range []int{0, 1, turn, turn + 1, 7*turn + 3} {
		var got strings.Builder
		inTurns(n, numbers, func(b []byte) { got.Write(b) })
		if want := string(numbers()(nil, 0, n)); got.String() != want {
			t.Errorf("%d entries come as %.80q", n, got.String())
		}
	}
}

// A writer that panics does so where its work was wanted, and nobody is left behind.
func TestAWriterThatPanics(t *testing.T) {
	defer func() {
		if cause := recover(); cause != "broken" {
			t.Errorf("got %v", cause)
		}
	}()
	inTurns(9*turn, func() func(b []byte, from, to int) []byte {
		return func(b []byte, from, to int) []byte {
			if from == 3*turn {
				panic("broken")
			}
			return append(b, 'x')
		}
	}, func([]byte) {})
	t.Error("it went on")
}
