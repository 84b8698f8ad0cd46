package syntax

import (
	"fmt"
	"math/big"
	"reflect"
	"strings"
)

// tree prints a file in full, places left out, one node a line:
//
//	Assign
//	  Target: Ref x
//	  Value: Int 1
func tree(f *File) string {
	var b strings.Builder
	if f.Doc != "" {
		fmt.Fprintf(&b, "Doc: %q\n", f.Doc)
	}
	for _, s := range f.Statements {
		printTree(&b, "", "", reflect.ValueOf(s))
	}
	return b.String()
}

func printTree(b *strings.Builder, indent, label string, v reflect.Value) {
	if label != "" {
		label += ": "
	}
	for v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch n := v.Interface().(type) {
	case *Ref:
		fmt.Fprintf(b, "%s%s%s\n", indent, label, n.Name.Text)
		return
	case *Literal:
		fmt.Fprintf(b, "%s%s%s\n", indent, label, Render(n))
		return
	case Ident:
		fmt.Fprintf(b, "%s%s%s\n", indent, label, n.Name)
		return
	case Name:
		fmt.Fprintf(b, "%s%s%s\n", indent, label, n.Text)
		return
	case TypeRef:
		fmt.Fprintf(b, "%s%s%s\n", indent, label, n)
		return
	case *big.Int, Span:
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			printTree(b, indent, strings.TrimSuffix(label, ": "), v.Elem())
		}
	case reflect.Struct:
		fmt.Fprintf(b, "%s%s%s\n", indent, label, v.Type().Name())
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				printTree(b, indent+"  ", v.Type().Field(i).Name, f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			printTree(b, indent, strings.TrimSuffix(label, ": "), v.Index(i))
		}
	default:
		fmt.Fprintf(b, "%s%s%#v\n", indent, label, v.Interface())
	}
}
