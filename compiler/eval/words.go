package eval

import (
	"ordain.dev/ordain/compiler/types"
)

// typeText describes a type in words, a typedef with its condition.
func typeText(t types.Type) string {
	switch t := t.(type) {
	case *types.Typedef:
		return t.Name + ", which is " + article(t.Base.String()) + " matching " + t.Condition
	case types.Optional:
		return typeText(t.Of) + ", or null"
	case types.ListOf:
		return "a list of " + t.Of.String()
	case *types.Entity:
		return "an instance of " + t.Name
	}
	return article(t.String())
}

// valueText describes a value with its type, in words.
func valueText(v types.Value) string {
	switch v := v.(type) {
	case types.Null:
		return "null"
	case types.Str:
		return titleOf(v) + ", a string"
	case types.Bool:
		return types.Text(v) + ", a bool"
	case types.Float:
		return types.Text(v) + ", a float"
	case *types.List:
		return "a list"
	case *types.Dict:
		return "a dict"
	case *Instance:
		return "an instance of " + v.entity.Name
	case *types.Reference:
		return "a reference"
	}
	if name := types.PythonName(v); name == "int" {
		return titleOf(v) + ", an int"
	}
	return titleOf(v)
}

func article(noun string) string {
	if noun != "" && (noun[0] == 'a' || noun[0] == 'e' || noun[0] == 'i' || noun[0] == 'o' || noun[0] == 'u') {
		return "an " + noun
	}
	return "a " + noun
}
