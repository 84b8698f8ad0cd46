package types

import "strings"

// Object is a Python object that is no other kind of value. When it is a string or a
// number of a class of its own, as a member of an enumeration may be, Base is that
// string or number. The object then counts as one wherever one is wanted, yet
// plug-ins get the same Python object back.
type Object struct {
	Handle uint64
	Class  string // with its module, such as decimal
	Base   Value  // Str, Int, BigInt, Float or nil
	// Shown are its str and its repr, where its class defines them.
	Shown []string
	// Number is "number" or "integral" where Python counts it as one.
	Number string
	// Own names the operations of Keeper that its class defines.
	Own []string
	// Keeper performs the operations in Own.
	Keeper Keeper
	// Dataclass is the entity that the object's class stands for, when it is a
	// dataclass of a plug-in package; Fields are its values.
	Dataclass []string
	Fields    []ReferenceArg
}

// Keeper holds the objects of Python. It is called only from the goroutine that
// evaluates.
type Keeper interface {
	// Do performs an operation of an object's class: "==" (with another value),
	// "int", "float", "bool", "str", "repr", "hash" or "format" (with a
	// specification). A nil value means that there is no such cast. The error is a
	// PythonError unless Python could not be asked.
	Do(o *Object, operation string, with Value) (Value, error)
}

func (*Object) value() {}

// does performs an operation if the object's class defines it.
func (o *Object) does(operation string, with Value) (result Value, own bool, err error) {
	for _, name := range o.Own {
		if name == operation {
			result, err = o.Keeper.Do(o, operation, with)
			return result, true, err
		}
	}
	return nil, false, nil
}

// equals compares the object with any other value.
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

// Plain returns the string or number that a value is when it is one in a class of
// its own; otherwise the value itself.
func Plain(v Value) Value {
	if o, ok := v.(*Object); ok && o.Base != nil {
		return o.Base
	}
	return v
}

// isA reports whether Python counts the object among the values of a primitive type.
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

// cast converts the object as int, float or bool do; nil when it cannot be
// converted.
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

// shown returns the str (0) or repr (1) of the object.
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

// Hash returns an error when the object cannot be the key of a dict.
func (o *Object) Hash() error {
	_, _, err := o.does("hash", nil)
	return err
}

// name returns the class without its module.
func (o *Object) name() string { return o.Class[strings.LastIndexByte(o.Class, '.')+1:] }
