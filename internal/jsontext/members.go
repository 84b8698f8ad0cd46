package jsontext

import "encoding/json"

// Shape is how much a JSON text would become when it is built as values.
type Shape struct {
	Values int // objects, arrays, texts, numbers, booleans, nulls and names; an empty array counts as two
	Depth  int // of objects and arrays in each other
}

// Measure returns the shape of a text, which must be valid JSON.
func Measure(text []byte) (shape Shape) {
	depth := 0
	shape.Values = 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case ':', ',':
			shape.Values++
		case '{', '[':
			shape.Values++
			depth++
			shape.Depth = max(shape.Depth, depth)
		case '}', ']':
			depth--
		}
	}
	return shape
}

// Members returns the members of a JSON object as parts of its text, without building their values; of members with
// the same name it returns the last, as encoding/json does. The text must be valid JSON. The members are nil when it is
// not an object.
func Members(text []byte) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	name, begun := "", -1 // of the member that is being read
	end := func(i int) {
		if begun >= 0 {
			members[name] = trim(text[begun:i])
		}
		begun = -1
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			from := i
			i = stringEnd(text, i)
			if depth == 1 && begun < 0 {
				_ = json.Unmarshal(text[from:i+1], &name) // a string of valid JSON can be decoded
			}
		case ':':
			if depth == 1 {
				begun = i + 1
			}
		case ',':
			if depth == 1 {
				end(i)
			}
		case '{', '[':
			if depth == 0 {
				if text[i] == '[' {
					return nil
				}
				members = map[string]json.RawMessage{}
			}
			depth++
		case '}', ']':
			if depth == 1 {
				end(i)
			}
			depth--
		}
	}
	return members
}

// stringEnd returns the index of the quote that ends the string which begins at i.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// trim removes white space around a value.
func trim(b []byte) []byte {
	white := func(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
	for len(b) > 0 && white(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && white(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b[:len(b):len(b)]
}
