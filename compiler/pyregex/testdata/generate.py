"""Random patterns and texts, and what CPython's re makes of them.

    python3.13 generate.py SEED COUNT
    python3.13 generate.py known 500 > recorded.jsonl

writes COUNT lines of JSON: [pattern, complaint or null, [[text, spans], ...]],
where spans are null (no match) or the span of the match and those of its
groups. TestAgainstCPython runs it when PYREGEX_PYTHON names an interpreter.
With "known" for the seed, patterns that were once matched wrongly come first.
"""

import json
import random
import re
import signal
import sys
import warnings

warnings.simplefilter("ignore")
R = random.Random(sys.argv[1])

ATOMS = (
    list("abcabcabcAB_10-., #{}]~\"'&")
    + [r"\d", r"\w", r"\s", r"\S", r"\W", r"\D", r"\b", r"\B", "^", "$", r"\Z", r"\A", ".", "."]
    + [r"\.", r"\-", r"\x61", r"\t", r"\n", r"\012", r"\0", r"\u0131", r"\U0001F600", r"\N{DIGIT ONE}", r"\/", r"\é", "\n"]
    + list("éÉßẞKſıİµς²½\u0301\x1c\xa0😀\U00010400\U00010428ﬅ")
)
MEMBERS = (
    list("abcABkKsSiI_10-.,#[^&|~ é")
    + ["a-c", "A-C", "a-z", "0-9", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\b", r"\n", r"\]", r"\-", r"\\", "[", "--", "&&", r"\x41-\x43", r"\t-\r"]
    + ["é-ü", "À-Ö", "\U00010400", "\U00010400-\U00010410", "Ā-\U00010450", "ß", "K", "ſ", "İ", "ı", "²", "\u0100-\uffff", r"\u0300-\u036f", r"\101", r"+-\-", "Α-ω", "!-~"]
)
QUANTS = ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "{0}", "{2,3}", "{,}", "{0,1}"]
OPENERS = ["(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?>", "(?i:", "(?s:", "(?m:", "(?x:", "(?-i:", "(?i-s:", "(?a:", "(?u:", "(?ai:"]
TEXT = "aaabbbccAB_10-., \t\n#éÉßẞKkſsıiİµμΜςσ²½\u0301\x1c\xa0\u2028😀\U00010400\U00010428ﬅﬆ٣~\"'"


# What another engine, or an earlier translation to one, got wrong; and what
# models have patterns for.
KNOWN = [
    (r"(?P<n>a)(b)\1", ["aba", "abb"]),
    (r"""(?P<q>["'])(.*?)\1""", ['"a"', "x", "\"a'"]),
    (r"(?P<y>[0-9]{4})-([0-9]{2})-\2", ["2020-01-01", "2020-01-2020"]),
    (r"(?P<n>a)?(b)(?(1)c|d)", ["abc", "bd", "bc"]),
    (r"\B", ["", "a", "ab", " "]),
    (r"\b", ["", "a", " a"]),
    (r"[^\W\d_]+$", ["aé", "a1", "a_", "²", "½"]),
    (r"(?:[\S]|\D)+$", [" x ", "\\n", "1 "]),
    (r"[\W]+$", ["é", ".-", "a"]),
    (r"é*+b", ["b", "ééb"]),
    (r"\.++a", ["..a", "a"]),
    (r"\.*+\.", ["..", "."]),
    (r"(?!(?:[a||b])b()+?)", ["a", "|b"]),
    (r"(?!()+?)", ["", "a"]),
    (r"(?:a??)*?b", ["aab", "b", "c"]),
    (r"(?:|a)+?$", ["aaa", "", "b"]),
    (r"(?:(a)|b)*\1", ["aba", "abb"]),
    (r"((a)b*(?(1)x|y))", ["abby", "abx"]),
    (r"[+\-\.]+$", ["+-.", ","]),
    (r"[+-\-]+$", ["+,-", "."]),
    (r"[!-\-]+$", ["!#-", "."]),
    (r"(?a)\w+$", ["ab1", "é", "²"]),
    (r"(?u)\w+$", ["ab1", "é", "²", "e\u0301"]),
    (r"(?a:\w)\w$", ["aé", "éa"]),
    (r"\d+$", ["٣", "²", "12"]),
    (r"\s+$", ["\x1c\x1d\x1e\x1f", "\xa0\u2028\u200a", "\u200b", "\ufeff"]),
    (r"(?a)\s+$", [" \t\r\n\f\v", "\x1c", "\xa0"]),
    (r"a\b", ["aé", "a²", "a\u0301", "a-"]),
    (r"(?i)straße", ["STRAẞE", "STRASSE", "ſtraße"]),
    (r"(?i)[s]+$", ["sSſ", "ß"]),
    (r"(?i)[a-z]+$", ["KſıİK", "é"]),
    (r"(?ia)[a-z]+$", ["aZ", "ſ", "K"]),
    (r"(?i)ΣΣ", ["σς", "ςΣ", "ss"]),
    (r"(?i)µ", ["μ", "Μ", "m"]),
    (r"(?i)[^k]", ["K", "K", "k", "j"]),
    (r"(?i)[x\U00010400]", ["\U00010400", "\U00010428", "X"]),
    (r"(?i)(ſ)\1", ["ſs", "ſſ", "ss"]),
    (r"(?#(?P=n))(a)\1", ["aa", "ab"]),
    (r"(?#(?P=n)a", ["a", "b"]),
    (r"(?x) a b # (c", ["ab", "a b"]),
    ("(?x)a#b\n c\xa0", ["ac\xa0", "ac"]),
    (r"(?(1)a|b)(c)", ["bc", "ac"]),
    (r"(?>a|ab)c", ["ac", "abc"]),
    (r"(?<=a|b)c", ["c"]),
    (r"a(?<=a|b)(?<!é)c", ["ac"]),
    (r"(?<=ab*)c", []),
    (r"(?<=(a))\1(?<=\1)", ["aa"]),
    (r"(a)(?<=\1)(?<=(?(1)a|b))", ["a"]),
    (r"x{,2}$", ["", "xx", "xxx"]),
    (r"x{,}$", ["", "xxx"]),
    (r"x{a}{", ["x{a}{"]),
    (r"[[:alpha:]]+$", ["a:]", "[b]"]),
    (r"[a-z&&[^b]]+$", ["a]", "&&]"]),
    (r"^[^\s,]+(?:,[^\s,]+)*\Z", ["a,b", "a,b\n", "a,"]),
    (r"^a$", ["a\n", "a\n\n"]),
    (r"(?m)^a$\n^b", ["a\nb"]),
    (r"a.c", ["a\nc", "a\rc", "a\u2028c"]),
    (r"\N{DIGIT ONE}\N{LF}[\N{hangul syllable gag}-]", ["1"]),
    (r"\N{DIGIT ONE}\N{LF}[\N{HANGUL SYLLABLE GAG}-\N{CJK UNIFIED IDEOGRAPH-4E00}]?", ["1\n각"]),
    (r"\p{L}", []),
    (r"\N{HANGUL SYLLABLE GAg}", []),
    (r"(?i", []),
    (r"a(?i)b", []),
    (r"(?a)(?u)b", []),
    ("(?P<a\u0301>x)(?P=a\u0301)", ["xx"]),
    ("(?P<²>x)", []),
    (r"(?P<a>x)(?P<a>y)", []),
    ("a\nb**", []),
    ("*\\", []),
    (r"x{99999999999}", []),
    (r"(?(0)a)", []),
    (r"(?(1)a|b|c)", []),
]


class Pattern:
    def __init__(self):
        self.groups = 0
        self.names = []

    def set(self):
        return "[" + R.choice(["", "", "^"]) + "".join(R.choice(MEMBERS) for _ in range(R.randint(1, 4))) + "]"

    def atom(self):
        k = R.random()
        if k < 0.45:
            return R.choice("abc")
        return self.set() if k < 0.6 else R.choice(ATOMS)

    def make(self, depth):
        k = R.random()
        if depth <= 0 or k < 0.15:
            return self.atom()
        if k < 0.42:
            return "".join(self.make(depth - 1) for _ in range(R.randint(2, 3)))
        if k < 0.58:
            part = self.make(depth - 1)
            if len(part) > 1 and R.random() < 0.8:
                opener = R.choice(["(?:", "(?:", "("])
                self.groups += opener == "("
                part = opener + part + ")"
            return part + R.choice(QUANTS) + R.choice(["", "", "", "?", "+"])
        if k < 0.66:
            return "|".join(R.choice([lambda: self.make(depth - 1), str])() for _ in range(R.randint(2, 3)))
        if k < 0.78:
            self.groups += 1
            return "(" + self.make(depth - 1) + ")"
        if k < 0.81:
            self.groups += 1
            name = f"n{self.groups}"
            self.names.append(name)
            return f"(?P<{name}>{self.make(depth - 1)})"
        if k < 0.89:
            return R.choice(OPENERS) + self.make(depth - 1) + ")"
        if k < 0.93:
            return "\\" + str(R.randint(1, max(self.groups, 1)))
        if k < 0.95 and self.names:
            return f"(?P={R.choice(self.names)})"
        if k < 0.985:
            other = "|" + self.make(depth - 1) if R.random() < 0.7 else ""
            name = R.choice(self.names) if self.names and R.random() < 0.3 else R.randint(1, max(self.groups, 1))
            return f"(?({name}){self.make(depth - 1)}{other})"
        return R.choice(["(?#c)", "", "|", "()", "(?!)", "(?=)", "(?<=)", "(?:)", "(?#(?P=n)"])


BROKEN = list("()[]{}*+?|\\^$.-:=!<>#&,") + ["(?", "(?P<", "(?P=", "(?<", "(?(", "(?i", "(?-", "[^", "\\x", "\\u", "\\N{", "\\8", "\\q", "\\400", "\\99", "é", "{3,2}", "(?x)", "(?i)", "(?L)", "(?au:", "1", "a", "n"]


def broken(p):
    for _ in range(R.randint(1, 2)):
        i = R.randrange(len(p) + 1)
        p = p[:i] + (R.choice(BROKEN) if R.random() < 0.7 else "") + p[i + R.randint(0, 1) :]
    return p


class TooLong(Exception):
    pass


def give_up(*_):
    raise TooLong


signal.signal(signal.SIGALRM, give_up)


def spans(compiled, text):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        m = compiled.match(text)
    except (TooLong, SystemError):  # the latter: CPython sees itself that a span is wrong
        return "?"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return m and [list(m.span(i)) for i in range(compiled.groups + 1)]


def ask(p, texts):
    try:
        compiled = re.compile(p)
    except Exception as e:
        return [p, str(e), []]
    rows = [[t, spans(compiled, t)] for t in texts]
    return [p, None, [row for row in rows if row[1] != "?"]]


def main():
    if sys.argv[1] == "known":
        for p, texts in KNOWN:
            print(json.dumps(ask(p, texts)))
    for _ in range(int(sys.argv[2])):
        p = Pattern().make(R.randint(2, 5))
        if R.random() < 0.25:
            p = R.choice(["(?i)", "(?i)", "(?s)", "(?m)", "(?x)", "(?a)", "(?im)", "(?ix)", "(?ia)", "(?u)"]) + p
        if R.random() < 0.1:
            p = broken(p)
        texts = ["".join(R.choice(R.choice(["abc", TEXT])) for _ in range(R.randint(0, 7))) for _ in range(8)]
        print(json.dumps(ask(p, texts)))


main()
