package comparison

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"ordain.dev/ordain/internal/intent"
)

// editsOf returns what changes in a resource, by the name of the attribute; nil when that is not known.
func editsOf(e intent.DiffEdit) (out []Edit) {
	if e.Changes != nil {
		var changes map[string]struct {
			Current json.RawMessage `json:"current"`
			Desired json.RawMessage `json:"desired"`
		}
		if json.Unmarshal(e.Changes, &changes) != nil {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			out = append(out, editOf(name, changes[name].Current, changes[name].Desired))
		}
		return out
	}
	if e.Before == nil || e.After == nil {
		return nil
	}
	var before, after map[string]json.RawMessage
	if json.Unmarshal(e.Before, &before) != nil || json.Unmarshal(e.After, &after) != nil {
		return nil
	}
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if !bytes.Equal(before[name], after[name]) {
			out = append(out, editOf(name, before[name], after[name]))
		}
	}
	return out
}

// editOf returns the change of one attribute.
func editOf(name string, before, after []byte) Edit {
	var was, now string
	if len(before) == 0 || len(after) == 0 || before[0] != '"' || after[0] != '"' ||
		json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &now) != nil {
		return Edit{Attribute: name, Before: string(before), After: string(after), Whole: true}
	}
	start, endWas, endNow := changedWords(was, now)
	return Edit{
		Attribute: name, Before: was[start:endWas], After: now[start:endNow],
		Whole: start == 0 && endWas == len(was) && endNow == len(now),
	}
}

// changedWords returns where two texts begin to differ, and where they end to. Words are not cut: 8080 and 8081 differ
// as a whole.
func changedWords(was, now string) (start, endWas, endNow int) {
	for start < len(was) && start < len(now) && was[start] == now[start] {
		start++
	}
	endWas, endNow = len(was), len(now)
	for endWas > start && endNow > start && was[endWas-1] == now[endNow-1] {
		endWas, endNow = endWas-1, endNow-1
	}
	for start > 0 && (inWord(was, start) || inWord(now, start)) {
		start--
	}
	for endWas < len(was) && (inWord(was, endWas) || inWord(now, endNow)) {
		endWas, endNow = endWas+1, endNow+1
	}
	return start, endWas, endNow
}

// inWord reports whether a place lies within a word or a character.
func inWord(s string, at int) bool {
	if at <= 0 || at >= len(s) {
		return false
	}
	if !utf8.RuneStart(s[at]) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at:])
	return isWord(before) && isWord(after)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
