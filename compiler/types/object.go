package types

import "strings"

// Object is a Python object that is no other value. When it is a string or a
// number of a class of its own, as the member of an enumeration may be, Base is
// that, and it is one wherever a string or number is wanted, yet the same
// Python object comes back to plug-ins.
type Object struct {
	Handle uint64
	Class  string // with its module: decimal.Decimal
	Base   Value  // Str, Int, BigInt, Float or nil
	// Shown are str and repr of it, where its class has its own.
	Shown []string
	// Number is "number" or "integral" where Python counts it as one.
	Number string
	// Own names what its class does in its own way: operations of Keeper.
	Own []string
	// Keeper is whom to ask for what stands in Own.
	Keeper Keeper
	// Dataclass is the entity that the object's class stands for, when it is a
	// dataclass of a plug-in package; Fields are its values.
	Dataclass []string
	Fields    []ReferenceArg
}

// Keeper is where Python's objects live. It is called from the engine's
// goroutine only.
type Keeper interface {
	// Do has an object's class do one of "==" (with another value), "int",
	// "float", "bool", "str", "repr", "hash" and "format" (with a specification).
	// A nil value means that there is no such cast; the error is a PythonError
	// unless Python could not be asked.
	Do(o *Object, operation string, with Value) (Value, error)
}

func (*Object) value() {}

// does has the object's class do something in its own way, if it has one.
func (o *Object) does(operation string, with Value) (result Value, own bool, err error) {
	for _, name := range o.Own {
		if name == operation {
			result, err = o.Keeper.Do(o, operation, with)
			return result, true, err
		}
	}
	return nil, false, nil
}

// equals is == with any other value.
func (o *Object) equals(other Value) bool {
	if result, own, err := o.does("==", other); own {
		return err == nil && result == Bool(true)
	}
	another, _ := other.(*Object)
	switch {
	case another != nil && o.Handle == another.Handle:
		return true
	case another != nil:
		if result, own, err := another.does("==", o); own {
			return err == nil && result == Bool(true)
		}
	}
	return o.Base != nil && Equal(o.Base, Plain(other))
}

// Plain is the string or number that a value is, where it is one in a class of
// its own; otherwise the value.
func Plain(v Value) Value {
	if o, ok := v.(*Object); ok && o.Base != nil {
		return o.Base
	}
	return v
}

// isA reports whether Python counts the object among a primitive type's values.
func (o *Object) isA(p Primitive) bool {
	if o.Base != nil {
		return p.has(o.Base)
	}
	switch p {
	case Any:
		return true
	case Number, Literal:
		return o.Number != ""
	case IntType:
		return o.Number == "integral"
	}
	return false
}

// cast is what int, float or bool makes of the object; nil when it cannot be.
func (o *Object) cast(p Primitive) (Value, error) {
	operation := string(p)
	if p == Number {
		operation = string(FloatT)
	}
	result, own, err := o.does(operation, nil)
	if p == BoolT && !own {
		return Bool(true), nil
	}
	return result, err
}

func (o *Object) truth() bool {
	result, err := o.cast(BoolT)
	return err != nil || result != Bool(false)
}

// shown is str (0) or repr (1) of the object.
func (o *Object) shown(which int) string {
	if len(o.Shown) > which {
		return o.Shown[which]
	}
	if text, own, err := o.does([]string{"str", "repr"}[which], nil); own && err == nil {
		if s, is := text.(Str); is {
			return string(s)
		}
	}
	switch {
	case o.Base == nil:
		return "<" + o.Class + " object>"
	case which == 0:
		return Text(o.Base)
	}
	return Repr(o.Base)
}

// Hash says why the object cannot be the key of a dict; nil when it can.
func (o *Object) Hash() error {
	_, _, err := o.does("hash", nil)
	return err
}

// name is the class without its module.
func (o *Object) name() string { return o.Class[strings.LastIndexByte(o.Class, '.')+1:] }
