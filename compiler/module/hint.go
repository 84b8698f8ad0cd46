package module

import (
	"fmt"
	"strings"
	"time"

	"ordain.dev/ordain/compiler/module/pydantic"
)

// hints says how to mend what does not fit, value by value.
func (f *fields) hints(problems []pydantic.Problem) string {
	var all []string
	told := map[string]bool{}
	for _, p := range problems {
		where, union := placeOf(p)
		if told[where] {
			continue
		}
		told[where] = true
		hint := hintOf(p, f.find(p.Path))
		if union {
			hint = "write a text, a number, true or false, or a section of these"
		}
		if hint != "" {
			all = append(all, where+": "+hint)
		}
	}
	if len(all) == 1 && len(told) == 1 {
		_, hint, _ := strings.Cut(all[0], ": ")
		return hint
	}
	return strings.Join(all, "; ")
}

// placeOf is where in the file a problem is, and whether a union has more to say
// of the same value.
func placeOf(p pydantic.Problem) (where string, union bool) {
	var steps []string
	for _, step := range p.Path {
		if _, union = step.(pydantic.Member); union {
			break
		}
		steps = append(steps, fmt.Sprint(step))
	}
	return strings.Join(steps, "."), union
}

// hintOf says how to mend a value that does not fit, in words of project files.
func hintOf(p pydantic.Problem, v value) string {
	switch p.Type {
	case "missing":
		return fmt.Sprintf("add a line `%v: …`", p.Path[len(p.Path)-1])
	case "string_type":
		return textHint(v)
	case "bool_type", "bool_parsing":
		return "write true or false"
	case "list_type", "is_instance_of", "sequence_str":
		return "write a list: a line that begins with - for each element"
	case "dict_type":
		return "write a section: lines `key: value`, indented"
	case "value_error":
		return valueHint(p)
	case "name_email_type":
		return "write an address such as name@example.com"
	}
	if len(p.Path) > 0 && p.Path[0] == "relation_precedence_policy" {
		return "write `Type.relation before Type.relation`"
	}
	return ""
}

func textHint(v value) string {
	switch v.is.(type) {
	case nil:
		return "nothing stands there: write a text, or leave the key out"
	case bool:
		return "YAML takes " + v.node.Value + " for a truth value: write it in quotes"
	case time.Time:
		return "YAML takes " + v.node.Value + " for a date: write it in quotes"
	}
	return "write a text"
}

func valueHint(p pydantic.Problem) string {
	switch {
	case strings.Contains(p.Text, "PEP440"):
		return "write a version such as 1.2.3"
	case strings.Contains(p.Text, "email"):
		return "write an address such as name@example.com"
	}
	return "a repo is a URL, or has a type and a url"
}
