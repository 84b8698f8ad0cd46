package types

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Value is any value of the language. The concrete types are Null, Bool, Int,
// BigInt, Float, Complex, Str, *List, *Dict, Instance, Unknown, *Reference and
// *Object, and no others.
type Value interface{ value() }

// Null is the value null.
type Null struct{}

// Unknown is a value that is not known yet because it comes from outside of the
// model. Two of them are the same only when they have the same number.
type Unknown struct{ Number uint64 }

// Bool is true or false.
type Bool bool

// Int is a whole number that fits into 64 bits; others are BigInt. A number has only
// one form: use NewInt.
type Int int64

// BigInt is a whole number that does not fit into an Int.
type BigInt struct{ *big.Int }

// Float is a floating point number.
type Float float64

// Complex is a complex number, which a power of a negative number may be. No
// operator takes it except ==, and it can be turned into text.
type Complex complex128

// Str is a string.
type Str string

// List is an ordered list. It is immutable once it is shared.
type List struct{ Items []Value }

// Dict maps strings to values and keeps the order of insertion.
type Dict struct {
	Keys   []string
	Values map[string]Value
}

// Instance is an instance of an entity. Package eval implements it.
type Instance interface {
	Value
	// InstanceID is unique in one compile and never 0.
	InstanceID() uint64
	// Entity returns the type that it was made with.
	Entity() *Entity
}

// Reference is a value that is only known when it is deployed. It lives in Python,
// under the name Handle.
type Reference struct {
	Handle uint64
	Type   string // as registered: std::Environment
	Of     string // the type of the value to come, as
	Args   []ReferenceArg
	// Fields is set for a reference to a dataclass: a reference to each of its
	// fields (core::AttributeReference), for the instance that stands for it.
	Fields []ReferenceArg
}

// gives reports whether the value to come always has type t.
func (r *Reference) gives(t Type) bool {
	switch t := t.(type) {
	case DictOf:
		return r.Of == string(DictT)
	case Union:
		return slices.ContainsFunc(t.Of, r.gives)
	}
	return narrower(r.Of, t.String())
}

func narrower(a, b string) bool {
	inner, optional := strings.CutSuffix(b, "?")
	switch {
	case a == b:
		return true
	case optional:
		return narrower(strings.TrimSuffix(a, "?"), inner)
	}
	return b == string(Number) && (a == string(IntType) || a == string(FloatT))
}

// mismatch returns an error when the value to come may not have type t.
func (r *Reference) mismatch(t Type) error {
	if r.gives(t) {
		return nil
	}
	return &Mismatch{
		Message: fmt.Sprintf("Invalid value: %s is not a subtype of Reference[%s]", Text(r), t),
		Typing:  true,
	}
}

// ReferenceArg is an argument of a reference.
type ReferenceArg struct {
	Name  string
	Value Value
}

func (Null) value()       {}
func (Unknown) value()    {}
func (Bool) value()       {}
func (Int) value()        {}
func (BigInt) value()     {}
func (Float) value()      {}
func (Complex) value()    {}
func (Str) value()        {}
func (*List) value()      {}
func (*Dict) value()      {}
func (*Reference) value() {}

// IsValue is embedded by implementations of Instance outside of this package.
type IsValue struct{}

func (IsValue) value() {}

// NewInt returns a whole number in its one form.
func NewInt(n *big.Int) Value {
	if n.IsInt64() {
		return Int(n.Int64())
	}
	return BigInt{new(big.Int).Set(n)}
}
