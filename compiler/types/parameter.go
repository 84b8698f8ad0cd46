package types

import "slices"

// Types of the parameters of plug-ins. An attribute of a model always takes a
// reference; a parameter takes one only where its type says so, see Strict.

// AnyList is `list` of a plug-in: a list whose elements are not checked.
type AnyList struct{}

func (AnyList) String() string { return "list" }

// Validate implements Type.
func (t AnyList) Validate(v Value) error {
	switch v.(type) {
	case Unknown, *List:
		return nil
	}
	return mistyped(v, t.String())
}

// ReferenceTo is Reference[T] of a plug-in.
type ReferenceTo struct{ Of Type }

func (t ReferenceTo) String() string {
	if t.Of == nil {
		return "Reference[any]"
	}
	return "Reference[" + t.Of.String() + "]"
}

// Validate implements Type.
func (t ReferenceTo) Validate(v Value) error {
	switch v := v.(type) {
	case Unknown:
		return nil
	case *Reference:
		if t.Of == nil || t.Of == Any || v.gives(t.Of) {
			return nil
		}
	case Instance:
		// A reference to a dataclass is an instance in the model.
		if ref := standsFor(v); ref != nil {
			e, ok := t.Of.(*Entity)
			if t.Of == nil || t.Of == Any || (ok && v.Entity().IsSubclassOf(e)) {
				return nil
			}
		}
	}
	return &Mismatch{Message: "Invalid value: " + Text(v) + " is not a subtype of " + t.String(), Typing: true}
}

// View is an entity whose instances a plug-in gets as they are, and not as objects
// of their Python dataclass.
type View struct{ *Entity }

// Stand is an instance that may stand for a reference to a dataclass.
type Stand interface {
	// StandsFor returns the reference; nil for an ordinary instance.
	StandsFor() *Reference
	// MadeOf returns the handle of the reference, or of the Python object, that the
	// instance was made of; 0 for others.
	MadeOf() uint64
	// Field returns the value of an attribute, if it is set.
	Field(name string) (Value, bool)
}

func standsFor(i Instance) *Reference {
	if stand, is := i.(Stand); is {
		return stand.StandsFor()
	}
	return nil
}

// Shown returns what a plug-in gets for a value that the type accepted: the
// reference to a dataclass itself, where the type names one.
func Shown(t Type, v Value) Value {
	switch t := t.(type) {
	case OrReference:
		return Shown(ReferenceTo(t), v)
	case ReferenceTo:
		_, entity := t.Of.(*Entity)
		if i, is := v.(Instance); is && entity {
			if ref := standsFor(i); ref != nil {
				return ref
			}
		}
	case Optional:
		return Shown(t.Of, v)
	case Union:
		for _, alternative := range t.Of {
			if Strict(alternative, v) == nil {
				return Shown(alternative, v)
			}
		}
	case ListOf:
		if list, is := v.(*List); is && namesTwins(t.Of) {
			made := &List{Items: make([]Value, len(list.Items))}
			for i, item := range list.Items {
				made.Items[i] = Shown(t.Of, item)
			}
			return made
		}
	}
	return v
}

// namesTwins reports whether the type names references to dataclasses.
func namesTwins(t Type) bool {
	switch t := t.(type) {
	case OrReference:
		_, entity := t.Of.(*Entity)
		return entity
	case ReferenceTo:
		_, entity := t.Of.(*Entity)
		return entity
	case Optional:
		return namesTwins(t.Of)
	case Union:
		for _, alternative := range t.Of {
			if namesTwins(alternative) {
				return true
			}
		}
	}
	return false
}

// BecomesDataclass reports whether the type names an entity that is a dataclass
// in Python.
func BecomesDataclass(t Type) bool {
	switch t := t.(type) {
	case *Entity:
		return t.Twin != nil
	case OrReference:
		return BecomesDataclass(t.Of)
	case Optional:
		return BecomesDataclass(t.Of)
	case ListOf:
		return BecomesDataclass(t.Of)
	case DictOf:
		return BecomesDataclass(t.Of)
	case Union:
		for _, alternative := range t.Of {
			if BecomesDataclass(alternative) {
				return true
			}
		}
	}
	return false
}

// isForeign reports whether an error of the condition of a typedef is an exception
// of Python in the reference. It says nothing about the value, so that no other type
// is tried.
func isForeign(err error) bool {
	own, is := err.(interface{ Foreign() bool })
	return is && own.Foreign()
}

// OrReference is T | Reference[T] of a plug-in.
type OrReference struct{ Of Type }

func (t OrReference) String() string {
	return ReferenceTo(t).String() + " | " + t.Of.String()
}

// Validate implements Type.
func (t OrReference) Validate(v Value) error {
	if _, is := v.(*Reference); is {
		return ReferenceTo(t).Validate(v)
	}
	return t.Of.Validate(v)
}

// MakeUnion joins alternatives as the reference does: null makes the whole type
// optional, and T with Reference[T] becomes one alternative.
func MakeUnion(alternatives []Type) Type {
	type half struct {
		of              Type
		plain, referred bool
	}
	var halves []*half
	nullable := false
	find := func(t Type) *half {
		for _, h := range halves {
			if h.of.String() == t.String() {
				return h
			}
		}
		h := &half{of: t}
		halves = append(halves, h)
		return h
	}
	for len(alternatives) > 0 {
		t := alternatives[0]
		alternatives = alternatives[1:]
		switch t := t.(type) {
		case Union:
			alternatives = append(alternatives, t.Of...)
		case Optional:
			nullable = true
			alternatives = append(alternatives, t.Of)
		case OrReference:
			h := find(t.Of)
			h.plain, h.referred = true, true
		case ReferenceTo:
			of := t.Of
			if of == nil {
				of = Any
			}
			find(of).referred = true
		default:
			if t == NullT {
				nullable = true
				continue
			}
			find(t).plain = true
		}
	}
	var made Union
	for _, h := range halves {
		switch {
		case h.plain && h.referred:
			made.Of = append(made.Of, OrReference{Of: h.of})
		case h.plain:
			made.Of = append(made.Of, h.of)
		default:
			made.Of = append(made.Of, ReferenceTo{Of: h.of})
		}
	}
	var out Type = made
	if len(made.Of) == 1 {
		out = made.Of[0]
	}
	if nullable {
		return Optional{Of: out}
	}
	return out
}

// Strict validates an argument of a plug-in. References are rejected unless the type
// names them, and instances that become dataclasses must have fields that their
// class can have. A nil type is any.
func Strict(t Type, v Value) error { return strict(t, v, true) }

// Returned validates the result of a plug-in: like Strict, except for the fields of
// instances.
func Returned(t Type, v Value) error { return strict(t, v, false) }

func strict(t Type, v Value, fields bool) error {
	switch t := t.(type) {
	case OrReference:
		if _, is := v.(*Reference); is {
			return t.Validate(v)
		}
		if i, is := v.(Instance); is && standsFor(i) != nil {
			return ReferenceTo(t).Validate(v)
		}
		return strict(t.Of, v, fields)
	case Optional:
		if _, null := v.(Null); null {
			return nil
		}
		return strict(t.Of, v, fields)
	case ListOf:
		if list, is := v.(*List); is {
			for _, item := range list.Items {
				if err := strict(t.Of, item, fields); err != nil {
					return err
				}
			}
			return nil
		}
	case DictOf:
		if dict, is := v.(*Dict); is {
			for _, k := range dict.Keys {
				if err := strict(t.Of, dict.Values[k], fields); err != nil {
					return err
				}
			}
			return nil
		}
		switch v.(type) {
		case *Reference:
			return mismatch(v, "dict")
		case Unknown: // in a list or another dict
			return PythonError{Class: "AssertionError"}
		}
	case Union:
		for _, alternative := range t.Of {
			if err := strict(alternative, v, fields); err == nil || isForeign(err) {
				return err
			}
		}
		return mistyped(v, t.String())
	case *Typedef:
		if _, is := v.(*Reference); is {
			return strict(t.Base, v, fields)
		}
	case *Entity:
		if err := t.Validate(v); err != nil {
			return err
		}
		if stand, is := v.(Stand); is && fields && t.Twin != nil && (stand.MadeOf() == 0 || stand.StandsFor() != nil) {
			return strictFields(v.(Instance).Entity(), stand)
		}
		return nil
	case nil, Primitive, Nominal:
		if _, is := v.(*Reference); is {
			if t == NullT {
				return mismatch(v, t.String())
			}
			return undeclared(t)
		}
	}
	if t == nil {
		return nil
	}
	return t.Validate(v)
}

// strictFields validates an instance that becomes a dataclass: the types of its
// fields say where references may be.
func strictFields(e *Entity, stand Stand) error {
	for _, f := range e.Twin {
		if v, set := stand.Field(f.Name); set {
			if holdsUnknown(v) {
				return &Mismatch{
					Typing: true,
					Message: "Encountered unknown in field '" + f.Name + "'. Unknowns are not currently " +
						"supported in dataclass instances in the Python domain.",
				}
			}
			if err := Strict(f.Type, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func holdsUnknown(v Value) bool {
	switch v := v.(type) {
	case Unknown:
		return true
	case *List:
		return slices.ContainsFunc(v.Items, holdsUnknown)
	case *Dict:
		for _, k := range v.Keys {
			if holdsUnknown(v.Values[k]) {
				return true
			}
		}
	}
	return false
}

// TakesReferences reports whether some kind of reference has the type.
func TakesReferences(t Type) bool {
	switch t := t.(type) {
	case ReferenceTo, OrReference:
		return true
	case Optional:
		return TakesReferences(t.Of)
	}
	return false
}

func undeclared(t Type) error {
	if t == nil || t == Any {
		return &Mismatch{
			Unexpected: true,
			Message: "References are not allowed for values of type `object`. While the `object` Python type is " +
				"technically compatible with" +
				" any value, references are considered special DSL values and are therefore guarded so that they " +
				"don't accidentally show up where they are not expected. To work with references, explicitly " +
				"declare support with a `object | Reference` annotation.",
		}
	}
	return &Mismatch{Unexpected: true, Message: "References are not allowed for values of type `" + t.String() +
		"`. To work with references, explicitly declare support with a `... | Reference[...]` annotation."}
}
