package ansible

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// document returns JSON as YAML in which no text is a template for Ansible: with templates, who may write the
// configuration of a cluster could run commands on the provisioner's machine.
func document(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	var w strings.Builder
	// The tag holds for all that is below. On a single text it would make a number of "10".
	w.WriteString("!unsafe ")
	write(&w, tree)
	w.WriteByte('\n')
	return []byte(w.String()), nil
}

func write(w *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		w.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			separate(w, i)
			// Keys longer than 1024 characters have to be announced.
			w.WriteString("? ")
			write(w, key)
			w.WriteString(" : ")
			write(w, v[key])
		}
		w.WriteByte('}')
	case []any:
		w.WriteByte('[')
		for i, element := range v {
			separate(w, i)
			write(w, element)
		}
		w.WriteByte(']')
	case string:
		quote(w, v)
	case json.Number:
		w.WriteString(number(string(v)))
	case bool:
		w.WriteString(strconv.FormatBool(v))
	default:
		w.WriteString("null")
	}
}

func separate(w *strings.Builder, i int) {
	if i > 0 {
		w.WriteString(", ")
	}
}

// quote writes a text in ASCII, since YAML does not allow all characters.
func quote(w *strings.Builder, text string) {
	w.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case r >= ' ' && r <= '~':
			w.WriteRune(r)
		default:
			fmt.Fprintf(w, `\U%08x`, r)
		}
	}
	w.WriteByte('"')
}

// number returns a number of JSON as YAML 1.1 has it, where 1e3 is a text and 1.0e+3 a number.
func number(text string) string {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	if !scientific {
		return text
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if exponent[0] != '-' && exponent[0] != '+' {
		exponent = "+" + exponent
	}
	return mantissa + "e" + exponent
}
