package pyregex

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/racedetector"
)

// names has the character names that the tests need.
func names(name string) (rune, bool) {
	r, ok := map[string]rune{"DIGIT ONE": '1', "LF": '\n', "HANGUL SYLLABLE GAG": '각',
		"CJK UNIFIED IDEOGRAPH-4E00": '一'}[name]
	return r, ok
}

func compiled(t testing.TB, pattern string) *Regexp {
	t.Helper()
	r, err := Compile(pattern, names)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A pattern that would match forever is stopped with an error.
func TestAMatchThatTakesTooLong(t *testing.T) {
	for _, pattern := range []string{"(a+)+$", "(?:a|aa)+$", "(a*)*b", `(?:(?:a?){50}){50}b`, "(?=(a+)+$)",
		"(?:a{0,40}){0,40}b", `(a*)(?:\1a?)*b`, "a*a*a*a*a*a*a*a*b"} {
		start := time.Now()
		ok, err := compiled(t, pattern).Match(strings.Repeat("a", 4000)+"c", 30*time.Millisecond)
		if ok || !errors.Is(err, ErrTooLong) {
			t.Errorf("%s gave %v, %v", pattern, ok, err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s took %v", pattern, took)
		}
	}
	if ok, err := compiled(t, "(a+)+$").Match("aaa", 30*time.Millisecond); !ok || err != nil {
		t.Errorf("a quick match gave %v, %v", ok, err)
	}
}

// A long text needs memory, but neither a deep Go stack nor excessive time.
func TestALongText(t *testing.T) {
	n := 1 << 19
	if racedetector.On {
		n = 1 << 15
	}
	long := strings.Repeat("ab", n)
	for _, pattern := range []string{"(a|b)*$", "(?:a|ba?)*$", "(ab)*$", "(ab)*?$", "(a|b)*+$", `(?:(a)(b))+$`,
		"(?>a|b)*$", ".*$", ".*?$", `\w*+$`, `(?:(?=a)ab)*$`, `((a)|(b))*$`} {
		if ok, err := compiled(t, pattern).Match(long, time.Minute); !ok || err != nil {
			t.Errorf("%s gave %v, %v", pattern, ok, err)
		}
	}
}

// Matching stops before it uses up the machine's memory.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() || racedetector.On {
		t.Skip("takes some 300 MB")
	}
	pattern := strings.Repeat("()", 100) + "(?:(a)|(b))*$"
	if ok, err := compiled(t, pattern).Match(strings.Repeat("ab", 1<<20), time.Minute); ok ||
		!errors.Is(err, ErrTooLong) {
		t.Errorf("gave %v, %v", ok, err)
	}
}

// Deeply nested brackets are rejected, as Python does, and do not crash the program.
func TestDeepBrackets(t *testing.T) {
	for _, open := range []string{"(", "(?:", "(?=", "(?(1)", "(?>", "(?i:"} {
		if _, err := Compile(strings.Repeat(open, 100_000), names); err == nil {
			t.Errorf("%s is not too deep", open)
		}
		if _, err := Compile("()"+strings.Repeat(open, 200)+strings.Repeat(")", 200), names); err != nil {
			t.Errorf("200 times %s: %v", open, err)
		}
	}
}

// An invalid byte counts as one character.
func TestStrayBytes(t *testing.T) {
	if ok, err := compiled(t, "^..(?<=a.)$").Match("a\xff", time.Second); !ok || err != nil {
		t.Errorf("gave %v, %v", ok, err)
	}
}

// A usual match allocates nothing.
func TestAPlainMatchAllocatesNothing(t *testing.T) {
	if racedetector.On {
		t.Skip("the race detector lets pools forget")
	}
	for pattern, text := range map[string]string{
		"^[a-z0-9_-]+$":                 "some-name_42",
		`^(\d{1,3}\.){3}\d{1,3}$`:       "192.168.1.254",
		`^\w+(?:\.\w+)*$`:               "jörg.müller",
		`^(?i:true|false|yes|no)$`:      "FALSE",
		`^(?P<q>['"])(?:(?!(?P=q)).)*"`: `"quoted"`,
	} {
		r := compiled(t, pattern)
		ok := false
		n := testing.AllocsPerRun(100, func() { ok, _ = r.Match(text, time.Second) })
		if !ok || n >= 1 {
			t.Errorf("%s on %s: %v, %v allocations", pattern, text, ok, n)
		}
	}
}

// No pattern panics or loops forever, and a match does not depend on earlier matches of
// the same machine.
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"(a|b)*+c", "abc"}, {`(?P<n>a)(?(n)\1|c){1,2}?`, "aaa"},
		{`(?i)[^\W\d_ſ-\x{2}]++(?<!é)`, "Kß"}, {"(?!()+?)", ""},
		{"(?x) a # b\n", "a"}, {`(?:|a)*?\b$`, "aaé"}, {`(?<=\n)(?m:^)`, "\n"}, {`\N{LF}{2,}`,
			"\n\n"}, {"((a)|b(?(2)c))*", "abc"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		r, err := Compile(pattern, names)
		if err != nil {
			var problem *Error
			if !errors.As(err, &problem) || problem.Message == "" {
				t.Fatalf("%q: %v", pattern, err)
			}
			return
		}
		const limit = 20 * time.Millisecond
		start := time.Now()
		first, err := r.Match(text, limit)
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("%q on %q took %v", pattern, text, took)
		}
		if err != nil {
			return
		}
		if second, err := r.Match(text, time.Second); err != nil || first != second {
			t.Fatalf("%q on %q: %v, then %v (%v)", pattern, text, first, second, err)
		}
	})
}
