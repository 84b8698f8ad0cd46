package pyyaml

import "ordain.dev/ordain/internal/python/pytext"

// kind is a kind of token, in the words of messages.
type kind string

const (
	streamEnd          kind = "<stream end>"
	directive          kind = "<directive>"
	documentStart      kind = "<document start>"
	documentEnd        kind = "<document end>"
	blockSequenceStart kind = "<block sequence start>"
	blockMappingStart  kind = "<block mapping start>"
	blockEnd           kind = "<block end>"
	flowSequenceStart  kind = "["
	flowSequenceEnd    kind = "]"
	flowMappingStart   kind = "{"
	flowMappingEnd     kind = "}"
	blockEntry         kind = "-"
	flowEntry          kind = ","
	keyMark            kind = "?"
	valueMark          kind = ":"
	alias              kind = "<alias>"
	anchor             kind = "<anchor>"
	tag                kind = "<tag>"
	scalar             kind = "<scalar>"
)

func (k kind) quoted() string { return pytext.Quote(string(k)) }

type token struct {
	kind       kind
	start, end Mark
	// value of a scalar; the name of an anchor or an alias, and of a directive;
	// what a tag has behind its handle.
	value string
	style Style
	// handle of a tag, or one that a directive declares; empty: a tag has none.
	handle string
	// detail of a directive: the prefix that its handle stands for, or the version.
	detail string
}
