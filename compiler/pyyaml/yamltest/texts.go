package yamltest

import (
	"bytes"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// pieces are what texts are made of and changed with: all that means something
// to YAML somewhere, and what does not.
var pieces = []string{
	": ", ":", "- ", "-", "? ", "?", "[", "]", "{", "}", ",", ", ", "&a ", "&b ", "&a", "*a", "*b ", "*c", "! ", "!t ", "!!str ", "!!int ", "!<x> ",
	"!<tag:yaml.org,2002:str> ", "!e!x ", "!%41", "!%zz", "!%ff ", "!a,b", "|", ">", "|-", "|+\n", ">2\n", "|1-\n", "|0\n", ">-x", "'", "''", "\"",
	"\\", "\\n", "\\x41", "\\u00e9", "\\uD800", "\\U0010ffff", "\\U00110000", "\\/", "\\q", "\\\n", "\\\t", "\\x4", "\\_", "\\N", "\\L", "#", " #", " # c\n",
	"\t", " ", "  ", "    ", "\n", "\n\n", "\n ", "\n  ", "\n   ", "\n\t", "\r\n", "\r", "---", "---\n", "--- ", "\n---\n", "...", "\n...\n", "%", "%YAML 1.1\n",
	"%YAML 1.2\n---\n", "%YAML 2.0\n", "%YAML x", "%YAML 1", "%YAML 1.1x", "%TAG ! tag:a,2000:\n", "%TAG !e! tag:e\n---\n", "%TAG !! x", "%TAG e", "%FOO bar\n", "%-",
	"\u0085", "\u2028", "\u2029", "\ufeff", "\ufffd", "é", "€", "😀",
	"<<: ", "<<", "=", "~", "null", "yes", "1", "-1", "0x1f", "010", "1:30", "1.5", ".inf", "1e3", "2020-01-01", "a", "b", "name", "key: value\n", "a: b", "@", "`", "$", "/",
	"- a\n- b\n", "[a, b]", "{a: b}", "{a: b, c}", "[a: b]", "[? a : b]", "? a\n: b\n", "'it''s'", "\"a\\\n b\"", "a b", "a  b", "a\n b", ":a", "-a", "?a", "a:b", "a#b", "\"a\":b", "'a':", "[a]: b", "{a}: ",
	strings.Repeat("k", 1030), strings.Repeat("x ", 400),
}

// forbidden is what no text may hold. It hides all else, so it is rare.
var forbidden = []string{
	"\x00",
	"\x07",
	"\x7f",
	"\x9f",
	"\ufffe",
	"\xff",
	"\xc3",
	"\xc0\x80",
	"\xed\xa0\x80",
	"\xe2\x82",
	"\xf0\x9f\x98",
	"\xf4\x90",
}

// Seeds are texts that are right, with all that YAML has.
var Seeds = []string{
	"name: example\ndescription: An example\nmodulepath: libs\nrepo:\n    - type: git\n      url: https://example.com/\n    - url: x\nrequires:\n  - std ~= 1.0\n  - \"a >= 2\"\ninstall_mode: release\n",
	"name: p\npip:\n    index_url: https://example.com/simple\n    extra_index_url: [a, \"b\", 'c']\n    pre: true\n    use_system_config: no\nenvironment_settings:\n  a: {b: 1, c: [2, 3]}\n  d: \"x: y\"\n",
	"name: mod\nversion: 1.0.0\nlicense: Apache 2.0\ncompiler_version: 2017.3\nauthor: A B <a@example.com>\n# a comment\nrequires: [std]\n",
	"a: &x {b: c}\nd:\n  <<: *x\n  e: f\ng: *x\n",
	"text: |\n  one\n   two\n\n  three\nfold: >-\n  one\n  two\n\n  three\n   four\n\nkeep: |+\n  a\n\n\nend: |2\n   x\n",
	"? complex key\n: complex value\n? [a, b]\n: - c\n  - d\n? - e\n: f\n?\n: g\n",
	"%YAML 1.1\n%TAG !e! tag:example.com,2000:\n---\na: !e!foo bar\nb: !!str 1\nc: ! 2\nd: !<tag:yaml.org,2002:int> 3\n...\n",
	"- - a\n  - b\n-\n  - c\n- d: e\n  f: g\n-\n- ''\n",
	"q: \"a\\tb\\\n   c\\x41\\u00e9\\U0001F600 \\\"x\\\"\"\ns: 'it''s\n  two\n\n  lines'\np: plain text\n  goes on\n\n  here # comment\n",
	"{a: b, 'c': d, \"e\":f, ? g : h, i, [j]: k, ? l}\n",
	"[a, [b, c], {d: e}, f: g, ? h : i, ]\n",
	"---\nname: x\n...\n",
	"a:\n- b\n- c\nd:\n  - e\n",
	"t: 2020-01-01 10:00:00 +1\nd: 2001-12-14\nn: ~\ni: 0b101\nf: 6.8523015e+5\ns: 190:20:30\nb: !!binary aGVsbG8=\nset: !!set {a, b}\no: !!omap [a: 1, b: 2]\n",
	"\ufeffname: bom\n",
	"a: b\r\nc: d\r\n",
	"",
}

// Texts makes texts by change of the seeds, and some from nothing.
func Texts(r *rand.Rand, n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for range n {
			if !yield(text(r)) {
				return
			}
		}
	}
}

func text(r *rand.Rand) []byte {
	t := allowed(r)
	if r.IntN(40) == 0 {
		t = slices.Insert(t, r.IntN(len(t)+1), []byte(pick(r, forbidden))...)
	}
	return t
}

func allowed(r *rand.Rand) []byte {
	var t []byte
	switch r.IntN(10) {
	case 0, 1, 2: // from nothing
		for range 1 + r.IntN(12) {
			t = append(t, pick(r, pieces)...)
		}
		return t
	case 3: // long, so that it is read in several pieces
		for range 1 + r.IntN(3) {
			t = append(t, "# "+strings.Repeat(pick(r, []string{"x", "é", "€", "x\r\n# "}), 1000+r.IntN(3200))+"\n"...)
		}
		t = append(t, pick(r, Seeds)...)
	default:
		t = []byte(pick(r, Seeds))
	}
	for range 1 + r.IntN(5) {
		t = change(r, t)
	}
	return t
}

func pick(r *rand.Rand, of []string) string { return of[r.IntN(len(of))] }

// change makes a small change somewhere.
func change(r *rand.Rand, t []byte) []byte {
	from := r.IntN(len(t) + 1)
	to := min(len(t), from+r.IntN(8))
	switch r.IntN(8) {
	case 0: // take away
		return slices.Delete(t, from, to)
	case 1: // twice
		return slices.Insert(t, to, bytes.Clone(t[from:to])...)
	case 2: // replace
		return slices.Replace(t, from, to, []byte(pick(r, pieces))...)
	case 3: // indent a line otherwise
		if at := bytes.LastIndexByte(t[:from], '\n'); at >= 0 {
			return slices.Insert(t, at+1, []byte(strings.Repeat(" ", 1+r.IntN(3)))...)
		}
		return append([]byte(" "), t...)
	case 4: // cut off
		if r.IntN(3) == 0 {
			return t[:from]
		}
		return slices.Insert(t, from, []byte(pick(r, pieces))...)
	case 5: // part of another one
		other := pick(r, Seeds)
		at := r.IntN(len(other) + 1)
		return slices.Insert(t, from, []byte(other[at:min(len(other), at+r.IntN(30))])...)
	}
	return slices.Insert(t, from, []byte(pick(r, pieces))...)
}

var (
	tags = []string{
		"",
		"",
		"!!int ",
		"!!float ",
		"!!bool ",
		"!!null ",
		"!!str ",
		"!!timestamp ",
		"!!binary ",
		"!!seq ",
		"!!map ",
		"!!set ",
		"!!omap ",
		"!!pairs ",
		"! ",
		"!x ",
	}
	anchored = []string{
		"{a: 1, name: 2}",
		"{b: 1, c: {d: 2}, name: {}}",
		"[a, 1]",
		"{<<: {a: 0, bb: 1}, bb: 2}",
		"{=: x, a: 1}",
		"x",
		"=",
		"!!set {a, b}",
		"{<<: [{name: 1}, {name: 2}, {a: 3}, {a: 4}]}",
		"!!str {=: x}",
	}
	// what a value may be where tags and words make one
	words = []string{
		"a", "b", "yes", "No", "oN", "maybe", "~", "null", "0", "-1", "+12", "0b101", "0b2", "-0x1F", "0o17", "017", "08", "1_000", "_", "-_", "1:30", "-1:59.5", "1:99", "1:x", "90:00:00",
		"1.5", "-.5", "1e3", "1.5e+3", "1.5E-300", "1.e+400", ".inf", "-.INF", ".NaN", "-.nan", "nan", "inf", "-infinity", "1__0.5_", "0x1p3", "٣", "１２", "\"\\u00a05\"", "\" 7 \"", "\"-- 7\"", "\"--7\"", "\"\"", "-",
		"2020-01-01", "2020-1-1", "2020-02-30", "0000-01-01", "2020-13-01", "2020-01-01 10:00:00", "2020-01-01T1:02:03.5Z", "2020-01-01 10:00:00 +1", "2020-01-01 10:00:00-1:30", "2020-01-01 10:00:00+24", "2020-01-01 10:00:00-30:59",
		"2020-01-01 25:00:00", "2020-01-01 00:61:00", "2020-01-01 00:00:61", "\"2020-01-01\\n\"", "2019-12-31 23:00:00Z", "2020-01-01 00:00:00+1", "2020-01-01 00:00:00.1234567",
		"aGk=", "aG", "aGk", "a", "\"a G\\nk=\"", "aGk=aGk=", "====", "é", "aé", "éé=x€", "=", "<<", "\"<<\"", "\"yes\\n\"", "\"\\uD800\"", "'it''s \"x\"'", "\"\\x00\"", "true", "1.0", "1", "True", "9007199254740993", "9007199254740992.0",
		"*a", "*b", "[*a, *b]", "{<<: *a, name: 3}", "{<<: [*a, {name: 4, a: 5}]}", "{<<: [*b, {a: 5}], b: 7}", "{<<: x}", "{<<: [x]}", "{<<: [[a: b]]}", "{=: a}", "{=: {=: 5}}", "{=: [a]}",
		"[a: b]", "[a: b, c: d]", "[{a: b, c: d}]", "[a]", "[[a]]", "{a: b}", "{a, b}", "{[a]: b}", "{{a: b}: c}", "{? !!set {a} : b}", "{? *a : b}", "[]", "{}", "{a: 1, a: 2, aa: 3, aa: 4}", "{<<: {a: 1, a: 2}, <<: {aa: 1, aa: 2}}",
	}
)

// ValueTexts makes texts in which values are in doubt, and some as Texts does.
func ValueTexts(r *rand.Rand, n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for range n {
			t := []byte(nil)
			if r.IntN(4) == 0 {
				t = text(r)
			} else {
				t = values(r)
			}
			if !yield(t) {
				return
			}
		}
	}
}

func values(r *rand.Rand) []byte {
	var t []byte
	begin := pick(r, []string{"- ", "k: ", "? "})
	if r.IntN(3) > 0 { // so that the aliases name something
		for _, anchor := range []string{"&a ", "&b "} {
			line := strings.Replace(begin, "k", anchor[1:2], 1) + anchor + pick(r, anchored)
			t = append(t, line+"\n"...)
		}
	}
	for i := range 1 + r.IntN(3) {
		line := begin
		if begin == "k: " {
			line = string(rune('k'+i)) + ": "
			if r.IntN(4) == 0 {
				line = pick(r, tags) + pick(r, words) + " : "
			}
		}
		t = append(t, line...)
		depth := max(0, r.IntN(6)-3)
		for range depth {
			t = append(t, pick(r, []string{"[", "[1, ", "[" + pick(r, tags)})...)
		}
		t = append(t, pick(r, tags)+pick(r, words)+strings.Repeat("]", depth)+"\n"...)
	}
	return t
}
