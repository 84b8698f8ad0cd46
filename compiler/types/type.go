package types

import (
	"fmt"
	"strings"
)

// Type is a set of values.
type Type interface {
	// String returns the type as the language writes it.
	String() string
	// Validate returns an error when a value does not have the type. Unknown has
	// every type.
	Validate(v Value) error
}

// Mismatch is the error for a value that does not have a type.
type Mismatch struct {
	Message string
	// Typedef is set when the condition of a typedef rejected the value.
	Typedef *Typedef
	// Typing means that the reference raises it as a TypingException.
	Typing bool
	// Unexpected means that the value is a reference where none is declared.
	Unexpected bool
}

func (m *Mismatch) Error() string { return m.Message }

func mismatch(v Value, t string) error {
	return &Mismatch{Message: fmt.Sprintf("Invalid value '%s', expected %s", Text(v), t)}
}

// mistyped is a mismatch with a type that is composed of others.
func mistyped(v Value, t string) error {
	return &Mismatch{Message: fmt.Sprintf("Invalid value '%s', expected %s", Text(v), t), Typing: true}
}

// Primitive is one of the types that are built into the language.
type Primitive string

// The primitives. Any is the type of what is not annotated.
const (
	String  Primitive = "string"
	IntType Primitive = "int"
	FloatT  Primitive = "float"
	Number  Primitive = "number"
	BoolT   Primitive = "bool"
	ListT   Primitive = "list"
	DictT   Primitive = "dict"
	Literal Primitive = "Literal"
	Any     Primitive = "any"
	NullT   Primitive = "null"
)

// primitives are the types that a model can name without an import.
var primitives = map[string]Primitive{
	"string": String, "int": IntType, "float": FloatT, "number": Number,
	"bool": BoolT, "list": ListT, "dict": DictT,
}

// LookupPrimitive finds a primitive by the name that models use.
func LookupPrimitive(name string) (Primitive, bool) {
	p, ok := primitives[name]
	return p, ok
}

func (p Primitive) String() string { return string(p) }

// Validate implements Type.
func (p Primitive) Validate(v Value) error {
	if p.has(v) {
		return nil
	}
	if ref, is := v.(*Reference); is {
		return ref.mismatch(p)
	}
	switch p {
	case ListT, DictT:
		return p.validateContainer(v)
	}
	if p == Literal {
		return mistyped(v, string(p))
	}
	return mismatch(v, string(p))
}

func (p Primitive) has(v Value) bool {
	switch v := v.(type) {
	case Unknown:
		return true
	case Null:
		return p == NullT || p == Any || p == Literal
	case Str:
		return p == String || p == Any || p == Literal
	case *Object:
		return v.isA(p)
	case Int, BigInt:
		return p == IntType || p == Number || p == Any || p == Literal
	case Float:
		return p == FloatT || p == Number || p == Any || p == Literal
	case Bool:
		return p == BoolT || p == IntType || p == Number || p == Any || p == Literal
	case Complex:
		return p == Number || p == Any || p == Literal
	case *List:
		return p == Any || ((p == ListT || p == Literal) && ListT.validateContainer(v) == nil)
	case *Dict:
		return p == Any || ((p == DictT || p == Literal) && DictT.validateContainer(v) == nil)
	case *Reference:
		return p == Any || p == Literal || v.gives(p)
	}
	return p == Any
}

func (p Primitive) validateContainer(v Value) error {
	switch v := v.(type) {
	case *List:
		if p == ListT {
			for _, item := range v.Items {
				if err := Literal.Validate(item); err != nil {
					return err
				}
			}
			return nil
		}
	case *Dict:
		if p == DictT {
			for _, k := range v.Keys {
				if err := Literal.Validate(v.Values[k]); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if p == ListT {
		return mistyped(v, string(p))
	}
	return mismatch(v, string(p))
}

// ListOf is T[].
type ListOf struct{ Of Type }

func (t ListOf) String() string { return enclosed(t.Of) + "[]" }

// enclosed is the text of a type before a suffix: in parentheses when it has several
// words.
func enclosed(t Type) string {
	text := t.String()
	if strings.Contains(text, " ") {
		return "(" + text + ")"
	}
	return text
}

// Validate implements Type.
func (t ListOf) Validate(v Value) error {
	switch v := v.(type) {
	case Unknown:
		return nil
	case *List:
		for _, item := range v.Items {
			if err := t.Of.Validate(item); err != nil {
				return err
			}
		}
		return nil
	case *Reference:
		return v.mismatch(t)
	}
	return mistyped(v, t.String())
}

// Optional is T?.
type Optional struct{ Of Type }

func (t Optional) String() string { return enclosed(t.Of) + "?" }

// Validate implements Type.
func (t Optional) Validate(v Value) error {
	switch v := v.(type) {
	case Null:
		return nil
	case *Reference:
		if v.mismatch(t) == nil {
			return nil
		}
	}
	return t.Of.Validate(v)
}

// DictOf is a dict whose values have one type: dict[str, T] of a plug-in.
type DictOf struct{ Of Type }

func (t DictOf) String() string { return "dict[string, " + t.Of.String() + "]" }

// Validate implements Type.
func (t DictOf) Validate(v Value) error {
	switch v := v.(type) {
	case Unknown:
		return nil
	case *Dict:
		for _, k := range v.Keys {
			if err := t.Of.Validate(v.Values[k]); err != nil {
				return err
			}
		}
		return nil
	case *Reference:
		return v.mismatch(t)
	}
	return mismatch(v, "dict")
}

// Union is any of several types.
type Union struct{ Of []Type }

func (t Union) String() string {
	names := make([]string, len(t.Of))
	for i, one := range t.Of {
		names[i] = one.String()
	}
	return "Union[" + strings.Join(names, ",") + "]"
}

// Validate implements Type.
func (t Union) Validate(v Value) error {
	for _, alternative := range t.Of {
		if alternative.Validate(v) == nil {
			return nil
		}
	}
	return mistyped(v, t.String())
}

// Nominal is the name of an implementation or a plug-in where a type is expected. As
// in the reference, it has all values except references.
type Nominal string

func (t Nominal) String() string { return string(t) }

// Validate implements Type.
func (t Nominal) Validate(v Value) error {
	if ref, is := v.(*Reference); is {
		return ref.mismatch(t)
	}
	return nil
}

// Typedef is a named restriction of another type.
type Typedef struct {
	Name string // fully qualified
	Doc  string
	Base Type
	// Condition is the text of the restriction, for errors.
	Condition string
	// Holds evaluates the restriction. Its error is returned as it is.
	Holds func(v Value) (bool, error)
	// Asks is set when the restriction, or that of the base, calls a plug-in.
	Asks bool
	// Sound is set when the chain of bases is known to end.
	Sound bool
	// At is where the typedef is defined; it means nothing here.
	At any
}

func (t *Typedef) String() string { return t.Name }

// Validate implements Type.
func (t *Typedef) Validate(v Value) error {
	switch v := v.(type) {
	case Unknown:
		return nil
	case *Reference:
		return v.mismatch(t) // the value to come is not
	}
	if err := t.Base.Validate(v); err != nil {
		return err
	}
	ok, err := t.Holds(v)
	if err != nil {
		return err
	}
	if !ok {
		return &Mismatch{
			Message: fmt.Sprintf("Invalid value %s, does not match constraint `%s`", Repr(v), t.Condition),
			Typedef: t,
		}
	}
	return nil
}

// Validate implements Type: the values are the instances of the entity and its
// descendants.
func (e *Entity) Validate(v Value) error {
	switch v := v.(type) {
	case Unknown:
		return nil
	case *Reference:
		if v.Of == e.Name {
			return nil
		}
	case Instance:
		if v.Entity().IsSubclassOf(e) {
			return nil
		}
		return &Mismatch{Message: fmt.Sprintf("Invalid class type for %s, should be %s", Text(v), e.Name)}
	}
	return &Mismatch{Message: fmt.Sprintf("Invalid type for value '%s', should be type %s", Text(v), e.Name)}
}

// PythonName is what Python calls the class of a value.
func PythonName(v Value) string {
	switch v := v.(type) {
	case Null:
		return "NoneValue"
	case Unknown:
		return "Unknown"
	case Bool:
		return "bool"
	case Int, BigInt:
		return "int"
	case Float:
		return "float"
	case Complex:
		return "complex"
	case Str:
		return "str"
	case *List:
		return "list"
	case *Dict:
		return "dict"
	case *Object:
		return v.name()
	case *Reference: // its class
		return v.Type[strings.LastIndexByte(v.Type, ':')+1:]
	case Instance:
		return "Instance"
	}
	return fmt.Sprintf("%T", v)
}
