package pyregex

import (
	"strings"
	"sync"
	"unicode"
)

// To ignore case, Python compares lower of the text with lower of the pattern. These are the lower-case
// letters that are equal though they differ, because their upper-case letters are equal.
var sameLetters = strings.Fields(
	"iı sſ µμ \u0345ι\u1fbe \u0390\u1fd3 \u03b0\u1fe3 βϐ εϵ θϑ κϰ πϖ ρϱ ςσ φϕ вᲀ дᲁ оᲂ сᲃ тᲄᲅ ъᲆ ѣᲇ ᲈꙋ ṡẛ ﬅﬆ",
)

var sameAs = sync.OnceValue(func() map[rune][]rune {
	m := make(map[rune][]rune, 2*len(sameLetters))
	for _, class := range sameLetters {
		for _, r := range class {
			m[r] = []rune(class)
		}
	}
	return m
})

// equivalents are the lower-case letters that are equal to one, including itself.
func equivalents(small rune) []rune {
	if small < 0x80 && small != 'i' && small != 's' {
		return []rune{small}
	}
	if class := sameAs()[small]; class != nil {
		return class
	}
	return []rune{small}
}

// lower is the lower-case letter of a letter in Python's engine.
func lower(r rune) rune { return unicode.ToLower(r) }

func asciiLower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// Letters whose upper-case form has several letters, of which Python's engine takes the first. Each is
// followed by that.
var severalCapitals = sync.OnceValue(func() map[rune]rune {
	pairs := []rune(capitals)
	m := make(map[rune]rune, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
})

const capitals = "ßS\u0149\u02bcǰJ\u0390\u0399\u03b0\u03a5\u0587\u0535\u1e96H\u1e97T\u1e98W\u1e99Y\u1e9aA\u1f50" +
	"\u03a5\u1f52\u03a5\u1f54\u03a5\u1f56\u03a5\u1f80\u1f08\u1f81\u1f09\u1f82\u1f0a\u1f83\u1f0b\u1f84\u1f0c" +
	"\u1f85\u1f0d\u1f86\u1f0e\u1f87\u1f0f\u1f88\u1f08\u1f89\u1f09\u1f8a\u1f0a\u1f8b\u1f0b\u1f8c\u1f0c\u1f8d" +
	"\u1f0d\u1f8e\u1f0e\u1f8f\u1f0f\u1f90\u1f28\u1f91\u1f29\u1f92\u1f2a\u1f93\u1f2b\u1f94\u1f2c\u1f95\u1f2d" +
	"\u1f96\u1f2e\u1f97\u1f2f\u1f98\u1f28\u1f99\u1f29\u1f9a\u1f2a\u1f9b\u1f2b\u1f9c\u1f2c\u1f9d\u1f2d\u1f9e" +
	"\u1f2e\u1f9f\u1f2f\u1fa0\u1f68\u1fa1\u1f69\u1fa2\u1f6a\u1fa3\u1f6b\u1fa4\u1f6c\u1fa5\u1f6d\u1fa6\u1f6e" +
	"\u1fa7\u1f6f\u1fa8\u1f68\u1fa9\u1f69\u1faa\u1f6a\u1fab\u1f6b\u1fac\u1f6c\u1fad\u1f6d\u1fae\u1f6e\u1faf" +
	"\u1f6f\u1fb2\u1fba\u1fb3\u0391\u1fb4\u0386\u1fb6\u0391\u1fb7\u0391\u1fbc\u0391\u1fc2\u1fca\u1fc3\u0397" +
	"\u1fc4\u0389\u1fc6\u0397\u1fc7\u0397\u1fcc\u0397\u1fd2\u0399\u1fd3\u0399\u1fd6\u0399\u1fd7\u0399\u1fe2" +
	"\u03a5\u1fe3\u03a5\u1fe4\u03a1\u1fe6\u03a5\u1fe7\u03a5\u1ff2\u1ffa\u1ff3\u03a9\u1ff4\u038f\u1ff6\u03a9" +
	"\u1ff7\u03a9\u1ffc\u03a9\ufb00F\ufb01F\ufb02F\ufb03F\ufb04F\ufb05S\ufb06S\ufb13\u0544\ufb14\u0544\ufb15" +
	"\u0544\ufb16\u054e\ufb17\u0544"

// upper is the upper-case letter of a letter in Python's engine.
func upper(r rune) rune {
	if r >= 0x80 {
		if first, ok := severalCapitals()[r]; ok {
			return first
		}
	}
	return unicode.ToUpper(r)
}

// isCased reports whether a character has case.
func isCased(r rune) bool { return lower(r) != r || upper(r) != r }

// fold says how characters of the text are folded before they are compared.
type fold uint8

const (
	exact fold = iota
	asciiFold
	uniFold
)

func (f fold) lower(r rune) rune {
	switch f {
	case asciiFold:
		return asciiLower(r)
	case uniFold:
		return lower(r)
	}
	return r
}

func (f fold) cased(r rune) bool {
	switch f {
	case asciiFold:
		return r < 0x80 && isLetter(r)
	case uniFold:
		return isCased(r)
	}
	return false
}

func (f fold) equivalents(small rune) []rune {
	if f == uniFold {
		return equivalents(small)
	}
	return []rune{small}
}

// casedIn reports whether a range has a character with case.
func (f fold) casedIn(lo, hi rune) bool {
	if f != exact && hi > 0xffff {
		return true // Python does not check each of very many
	}
	for r := lo; r <= min(hi, 0xffff); r++ {
		if f.cased(r) {
			return true
		}
	}
	return false
}

// asciiReaches reports whether a range has a character with this lower-case letter in ASCII.
func asciiReaches(lo, hi, small rune) bool {
	return within(lo, hi, small) && asciiLower(small) == small ||
		'a' <= small && small <= 'z' && within(lo, hi, small-'a'+'A')
}

// reaches reports whether a range has a character whose lower-case letter is this one or equal to it.
func reaches(lo, hi, small rune) bool {
	for _, same := range equivalents(small) {
		if within(lo, hi, same) && lower(same) == same || same == 'i' && within(lo, hi, 'İ') {
			return true
		}
		for r := unicode.SimpleFold(same); r != same; r = unicode.SimpleFold(r) {
			if within(lo, hi, r) && lower(r) == same {
				return true
			}
		}
	}
	return false
}

func within(lo, hi, r rune) bool { return lo <= r && r <= hi }
