package plugin

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"ordain.dev/ordain/compiler/eval"
)

// packing writes values one after the other, or reads them in the same order:
// one description of a format serves both. What is written is not touched: others
// may be reading it. Numbers are varints, texts and lists begin with their length.
//
// What every compile reads is packed. JSON took longer to read than the modules
// that it is about, and its decoder searches the types of the whole program.
type packing struct {
	reading bool
	bytes   []byte // written so far, or what there is left to read
	text    string // the same as bytes, when reading: texts are parts of it
	depth   int    // of an annotation
	err     error
}

// deepest is how deep annotations nest.
const deepest = 1000

var errPacked = errors.New("not as it was packed")

func reader(bytes []byte) *packing {
	return &packing{reading: true, bytes: bytes, text: string(bytes)}
}

func (p *packing) fail() { p.bytes, p.text, p.err = nil, "", errPacked }

// done is the error of reading; what is left over is one too.
func (p *packing) done() error {
	if p.reading && p.err == nil && len(p.bytes) > 0 {
		p.fail()
	}
	return p.err
}

func (p *packing) number(n *int64) {
	if !p.reading {
		p.bytes = binary.AppendVarint(p.bytes, *n)
		return
	}
	read, size := binary.Varint(p.bytes)
	if size <= 0 {
		p.fail()
		return
	}
	*n = read
	p.skip(size)
}

func (p *packing) skip(n int) { p.bytes, p.text = p.bytes[n:], p.text[n:] }

// length is that of a text or a list, none of which has more parts than there
// are bytes.
func (p *packing) length(n int) int {
	long := int64(n)
	p.number(&long)
	if p.reading && (long < 0 || long > int64(len(p.bytes))) {
		p.fail()
		return 0
	}
	return int(long)
}

func (p *packing) string(s *string) {
	n := p.length(len(*s))
	if !p.reading {
		p.bytes = append(p.bytes, *s...)
		return
	}
	*s = p.text[:n]
	p.skip(n)
}

// raw is for bytes that are not changed: they are not copied. None are nil.
func (p *packing) raw(b *[]byte) {
	n := p.length(len(*b))
	if !p.reading {
		p.bytes = append(p.bytes, *b...)
		return
	}
	if *b = nil; n > 0 {
		*b = p.bytes[:n:n]
	}
	p.skip(n)
}

func (p *packing) flag(b *bool) {
	n := int64(0)
	if *b {
		n = 1
	}
	if p.number(&n); p.reading {
		*b = n != 0
	}
}

func (p *packing) int(i *int) {
	n := int64(*i)
	if p.number(&n); p.reading {
		*i = int(n)
	}
}

func (p *packing) strings(list *[]string) { packList(p, list, p.string) }

// packList keeps a list apart from one that is nil.
func packList[T any](p *packing, list *[]T, each func(*T)) {
	there := *list != nil
	if p.flag(&there); !there {
		return // nil already, where it is read into
	}
	n := p.length(len(*list))
	if !p.reading {
		for i := range *list {
			each(&(*list)[i])
		}
		return
	}
	*list = make([]T, 0, min(n, 256)) // it may lie
	for i := 0; i < n && p.err == nil; i++ {
		var one T
		each(&one)
		*list = append(*list, one)
	}
}

// packMap is packList for a map, in the order of its keys.
func packMap[T any](p *packing, m *map[string]T, each func(*T)) {
	type entry struct {
		key   string
		value T
	}
	var entries []entry
	if *m != nil {
		entries = make([]entry, 0, len(*m))
		for _, key := range sortedKeys(*m) {
			entries = append(entries, entry{key, (*m)[key]})
		}
	}
	packList(p, &entries, func(e *entry) {
		p.string(&e.key)
		each(&e.value)
	})
	if !p.reading {
		return
	}
	*m = nil
	if entries != nil {
		*m = make(map[string]T, len(entries))
		for _, e := range entries {
			(*m)[e.key] = e.value
		}
	}
}

// pack is the format of a table: another one is another tableFormat.
func (t *table) pack(p *packing) {
	p.string(&t.Python)
	packList(p, &t.Plugins, func(raw *json.RawMessage) { p.raw((*[]byte)(raw)) })
	packList(p, &t.signatures, func(s **eval.Signature) {
		if p.reading {
			*s = &eval.Signature{}
		}
		packSignature(p, *s)
	})
	packList(p, &t.Dataclasses, func(d *eval.Dataclass) { packDataclass(p, d) })
	packList(p, &t.Warnings, func(w *remark) {
		line := int64(w.Line)
		p.string(&w.Message)
		p.string(&w.File)
		if p.number(&line); p.reading {
			w.Line = int32(line)
		}
	})
	p.raw((*[]byte)(&t.Export))
	packMap(p, &t.Code, p.strings)
	for _, list := range []*[]string{&t.Finalizers, &t.Shared, &t.Early} {
		p.strings(list)
	}
	p.string(&t.Salt)
	packMap(p, &t.Variables, p.string)
	p.string(&t.Everything)
	packList(p, &t.Files, func(i *input) { i.pack(p) })
	packList(p, &t.Folders, func(i *input) { i.pack(p) })
}

func (i *input) pack(p *packing) {
	p.string(&i.Path)
	for n := range i.Stamp {
		p.number(&i.Stamp[n])
	}
	p.string(&i.Hash)
	p.flag(&i.Fresh)
}

func packSignature(p *packing, s *eval.Signature) {
	p.string(&s.Name)
	packList(p, &s.Params, func(param *eval.Param) {
		p.string(&param.Name)
		p.string((*string)(&param.Kind))
		packAnnotation(p, &param.Type)
		p.flag(&param.HasDefault)
	})
	packAnnotation(p, &s.Return)
	for _, flag := range []*bool{&s.AllowUnknown, &s.Emits, &s.Context, &s.Deprecated} {
		p.flag(flag)
	}
	for _, text := range []*string{&s.ContextKeyword, &s.ReplacedBy, &s.File} {
		p.string(text)
	}
	p.int(&s.Line)
}

func packAnnotation(p *packing, a **eval.Annotation) {
	there := *a != nil
	if p.flag(&there); !there {
		return
	}
	if p.depth++; p.depth > deepest {
		p.fail()
		return
	}
	defer func() { p.depth-- }()
	if p.reading {
		*a = &eval.Annotation{}
	}
	made := *a
	for _, text := range []*string{&made.Kind, &made.Name, &made.Text} {
		p.string(text)
	}
	packList(p, &made.Of, func(of **eval.Annotation) { packAnnotation(p, of) })
	p.flag(&made.View)
}

func packDataclass(p *packing, d *eval.Dataclass) {
	p.string(&d.Name)
	p.string(&d.Class)
	packList(p, &d.Fields, func(f *eval.DataclassField) {
		p.string(&f.Name)
		packAnnotation(p, &f.Type)
		p.flag(&f.Default)
	})
	p.flag(&d.Frozen)
	p.flag(&d.Plain)
	p.string(&d.File)
	p.int(&d.Line)
}
