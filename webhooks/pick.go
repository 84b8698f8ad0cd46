package webhooks

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// A payload has up to a hundred members for each that is read. pick goes over it
// once and leaves a small document with what a type has fields for:
//
//	{"ref": "refs/heads/main", "organization": {…}, "repository": {"id": 7, "full_name": "ops/site", …}}
//	{"ref": "refs/heads/main",                       "repository": {"full_name": "ops/site"}}
//
// encoding/json reads every payload twice before it knows what is in it, and its
// sender waits meanwhile.

// wanted are the members of an object that are read, by name in lower case, and
// what is read of each. A nil one is read whole.
type wanted map[string]wanted

// longestName bounds the names of members that are compared.
const longestName = 32

var wantedTypes sync.Map // reflect.Type to wanted

// wantedBy gives what a value of this type reads.
func wantedBy(t reflect.Type) wanted {
	if w, ok := wantedTypes.Load(t); ok {
		return w.(wanted)
	}
	w := membersOf(t)
	wantedTypes.Store(t, w)
	return w
}

var reads = reflect.TypeFor[json.Unmarshaler]()

// membersOf knows plain structs, and lists of and pointers to them. All else is read whole.
func membersOf(t reflect.Type) wanted {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Implements(reads) {
			return nil
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reads) {
		return nil
	}
	w := wanted{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if f.Anonymous || len(name) > longestName {
			return nil
		}
		if f.IsExported() {
			w[strings.ToLower(name)] = membersOf(f.Type)
		}
	}
	return w
}

// pick gives a document that is read as body is, by a type that wants w. It
// gives none when body is not JSON, or so odd that it is better read whole.
func pick(body []byte, w wanted) ([]byte, bool) {
	p := picker{body: body, out: make([]byte, 0, 1024)}
	p.space()
	ok := p.value(w, 0)
	p.space()
	return p.out, ok && p.at == len(body)
}

// picker goes through a document. What it goes through it checks.
type picker struct {
	body []byte
	at   int
	out  []byte
}

// deepest is how many objects and lists may lie in each other.
const deepest = 200

// next takes a byte that must come next.
func (p *picker) next(c byte) bool {
	if p.at < len(p.body) && p.body[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *picker) space() {
	for p.at < len(p.body) && (p.body[p.at] == ' ' || p.body[p.at] == '\n' || p.body[p.at] == '\t' || p.body[p.at] == '\r') {
		p.at++
	}
}

// value copies what is wanted of a value.
func (p *picker) value(w wanted, depth int) bool {
	if w == nil || p.at == len(p.body) || depth > deepest {
		return p.whole(depth)
	}
	switch p.body[p.at] {
	case '{':
		return p.list('{', '}', depth, func(first bool) bool { return p.member(w, first, depth) })
	case '[':
		return p.list('[', ']', depth, func(first bool) bool {
			if !first {
				p.out = append(p.out, ',')
			}
			return p.value(w, depth+1)
		})
	}
	return p.whole(depth)
}

// list copies an object or a list, whose members copy themselves.
func (p *picker) list(begin, end byte, depth int, member func(first bool) bool) bool {
	p.out = append(p.out, begin)
	from := len(p.out)
	ok := p.each(end, func() bool { return member(len(p.out) == from) })
	p.out = append(p.out, end)
	return ok
}

// each goes through the members of an object or a list.
func (p *picker) each(end byte, member func() bool) bool {
	p.at++
	p.space()
	if p.next(end) {
		return true
	}
	for {
		p.space()
		if !member() {
			return false
		}
		p.space()
		if p.next(end) {
			return true
		}
		if !p.next(',') {
			return false
		}
	}
}

// member copies a member of an object if it is wanted. One whose name is not
// plain may be meant by a field all the same, and is copied.
func (p *picker) member(w wanted, first bool, depth int) bool {
	begin := p.at
	if !p.text() {
		return false
	}
	of, known := w.member(p.body[begin+1 : p.at-1])
	name := p.body[begin:p.at]
	p.space()
	if !p.next(':') {
		return false
	}
	p.space()
	if !known {
		return p.skip(depth + 1)
	}
	if !first {
		p.out = append(p.out, ',')
	}
	p.out = append(append(p.out, name...), ':')
	return p.value(of, depth+1)
}

// member tells what is wanted of the member with this name. Case does not count.
func (w wanted) member(name []byte) (wanted, bool) {
	var lower [longestName]byte
	long := len(name) > longestName
	for i, c := range name {
		switch {
		case c >= 0x80 || c == '\\':
			return nil, true
		case long:
		case 'A' <= c && c <= 'Z':
			lower[i] = c | 0x20
		default:
			lower[i] = c
		}
	}
	if long {
		return nil, false
	}
	of, ok := w[string(lower[:len(name)])]
	return of, ok
}

// whole copies a value.
func (p *picker) whole(depth int) bool {
	begin := p.at
	ok := p.skip(depth)
	p.out = append(p.out, p.body[begin:p.at]...)
	return ok
}

// skip goes over a value.
func (p *picker) skip(depth int) bool {
	if p.at == len(p.body) || depth > deepest {
		return false
	}
	switch c := p.body[p.at]; c {
	case '"':
		return p.text()
	case '{':
		return p.each('}', func() bool {
			if !p.text() {
				return false
			}
			p.space()
			if !p.next(':') {
				return false
			}
			p.space()
			return p.skip(depth + 1)
		})
	case '[':
		return p.each(']', func() bool { return p.skip(depth + 1) })
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	}
	return p.number()
}

func (p *picker) word(w string) bool {
	for i := range len(w) {
		if !p.next(w[i]) {
			return false
		}
	}
	return true
}

// marks are the bytes that mean something in a text, or may not be in it.
var marks = func() (m [256]bool) {
	for c := range 0x20 {
		m[c] = true
	}
	m['"'], m['\\'] = true, true
	return m
}()

// text goes over a text with its quotes.
func (p *picker) text() bool {
	if !p.next('"') {
		return false
	}
	for b := p.body; ; {
		i := p.at
		for i < len(b) && !marks[b[i]] {
			i++
		}
		p.at = i + 1
		if i == len(b) || b[i] < 0x20 {
			p.at = i
			return false
		}
		if b[i] == '"' {
			return true
		}
		if p.at == len(b) || !p.escape() {
			return false
		}
	}
}

// escape goes over what follows a backslash.
func (p *picker) escape() bool {
	c := p.body[p.at]
	p.at++
	if c != 'u' {
		return strings.IndexByte(`"\/bfnrt`, c) >= 0
	}
	for range 4 {
		if p.at == len(p.body) || strings.IndexByte("0123456789abcdefABCDEF", p.body[p.at]) < 0 {
			return false
		}
		p.at++
	}
	return true
}

func (p *picker) number() bool {
	p.next('-')
	if !p.next('0') && !p.digits() {
		return false
	}
	if p.next('.') && !p.digits() {
		return false
	}
	if p.next('e') || p.next('E') {
		_ = p.next('+') || p.next('-')
		return p.digits()
	}
	return true
}

// digits goes over at least one.
func (p *picker) digits() bool {
	begin := p.at
	for p.at < len(p.body) && '0' <= p.body[p.at] && p.body[p.at] <= '9' {
		p.at++
	}
	return p.at > begin
}
