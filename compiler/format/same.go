package format

import (
	"math/big"
	"reflect"

	"ordain.dev/ordain/compiler/syntax"
)

var spanType = reflect.TypeFor[syntax.Span]()

// Same reports whether two files have the same statements, without regard to their places.
func Same(a, b *syntax.File) bool {
	return a.Doc == b.Doc && same(reflect.ValueOf(a.Statements), reflect.ValueOf(b.Statements))
}

func same(a, b reflect.Value) bool {
	if a.Kind() != b.Kind() || a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		if n, is := a.Interface().(*big.Int); is {
			return n.Cmp(b.Interface().(*big.Int)) == 0
		}
		return same(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		if a.Type() == spanType {
			return true
		}
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Float64:
		x, y := a.Float(), b.Float()
		return x == y || x != x && y != y
	}
	return a.Equal(b)
}
