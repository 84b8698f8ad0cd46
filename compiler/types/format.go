package types

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/internal/python/pytext"
)

// spec is a parsed format specification of Python:
// [[fill]align][sign][z][#][0][width][grouping][.precision][type].
type spec struct {
	fill      rune
	align     byte
	sign      byte
	alternate bool
	noNegZero bool
	zeroed    bool // a 0 before the width set
	width     int
	grouping  byte
	precision int // -1 means none
	verb      byte
}

// PythonError is an error of Python that is no ValueError.
type PythonError struct{ Class, Text string }

func (e PythonError) Error() string { return e.Text }

// Foreign reports that the error says nothing about a value, so that no other type
// is tried.
func (e PythonError) Foreign() bool { return true }

// maxWidth is more than anyone writes. Python runs out of memory at some width.
const maxWidth = 1 << 28

// Format formats a value as Python's format(value, spec) does. The error has the
// text of Python's ValueError, or is another PythonError.
func Format(v Value, specification string) (string, error) {
	if o, ok := v.(*Object); ok {
		if text, own, err := o.does("format", Str(specification)); own {
			if err != nil || text == nil {
				return "", err
			}
			return Text(text), nil
		}
	}
	if specification == "" {
		return Printed(v, false)
	}
	class := PythonName(v)
	v = Plain(v)
	switch v.(type) {
	case Str, Int, BigInt, Bool, Float, Complex:
	default:
		return "", PythonError{"TypeError", fmt.Sprintf("unsupported format string passed to %s.__format__", class)}
	}
	sp, err := parseSpec(specification)
	if err == nil {
		if _, is := v.(Str); is && sp.verb == 0 {
			sp.verb = 's'
		}
		err = sp.grouped()
		if err != nil {
			return "", err
		}
	}
	switch err {
	case nil:
	case errHuge, errNoPrecision, errBothSeparators:
		return "", err
	default:
		return "", fmt.Errorf("Invalid format specifier '%s' for object of type '%s'", specification, class)
	}
	switch v := v.(type) {
	case Str:
		return sp.text(string(v))
	case Float:
		return sp.float(float64(v), class)
	case Complex:
		return sp.complex(v)
	}
	switch sp.verb {
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		f, err := asFloat(v)
		if err != nil {
			return "", PythonError{"OverflowError", err.Error()}
		}
		return sp.float(f, class)
	}
	return sp.integer(asBig(v), class)
}

var (
	errHuge        = errors.New("Too many decimal digits in format string")
	errNoPrecision = errors.New("Format specifier missing precision")

	errBothSeparators = errors.New("Cannot specify both ',' and '_'.")
)

func parseSpec(s string) (spec, error) {
	sp := spec{fill: ' ', precision: -1}
	filled := false
	first, n := utf8.DecodeRuneInString(s)
	if n < len(s) && strings.IndexByte("<>=^", s[n]) >= 0 {
		sp.fill, sp.align, filled = first, s[n], true
		s = s[n+1:]
	} else if s != "" && strings.IndexByte("<>=^", s[0]) >= 0 {
		sp.align = s[0]
		s = s[1:]
	}
	take := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	huge := false
	number := func() int {
		i := 0
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		value, err := strconv.Atoi(s[:i])
		if i > 0 && (err != nil || value > maxWidth) {
			value, huge = 0, true
		}
		s = s[i:]
		return value
	}
	sp.sign = take("+- ")
	sp.noNegZero = take("z") != 0
	sp.alternate = take("#") != 0
	if take("0") != 0 {
		if !filled {
			sp.fill = '0'
		}
		if sp.align == 0 {
			sp.align, sp.zeroed = '=', true
		}
	}
	sp.width = number()
	sp.grouping = take(",_")
	if other := take(",_"); other != 0 {
		if other != sp.grouping {
			return sp, errBothSeparators
		}
		s = string(other) + s
	}
	if take(".") != 0 {
		if s == "" || !isDigit(s[0]) {
			return sp, errNoPrecision
		}
		sp.precision = number()
	}
	sp.verb = take("bcdeEfFgGnosxX%")
	if len(s) == 1 && sp.verb == 0 {
		sp.verb, s = s[0], "" // there is no such type: rejected where
	}
	if huge {
		return sp, errHuge
	}
	if s != "" {
		return sp, fmt.Errorf("rest %q", s)
	}
	return sp, nil
}

// grouped rejects separators where the type of the field allows none.
func (sp spec) grouped() error {
	allowed := "deEfFgG%"
	if sp.grouping == '_' {
		allowed += "boxX"
	}
	if sp.grouping == 0 || sp.verb == 0 || strings.IndexByte(allowed, sp.verb) >= 0 {
		return nil
	}
	return fmt.Errorf("Cannot specify '%c' with '%c'.", sp.grouping, sp.verb)
}

func (sp spec) unknownCode(class string) error {
	return fmt.Errorf("Unknown format code '%c' for object of type '%s'", sp.verb, class)
}

func (sp spec) text(s string) (string, error) {
	switch {
	case sp.verb != 's':
		return "", sp.unknownCode("str")
	case sp.sign == ' ':
		return "", fmt.Errorf("Space not allowed in string format specifier")
	case sp.sign != 0:
		return "", fmt.Errorf("Sign not allowed in string format specifier")
	case sp.noNegZero:
		return "", fmt.Errorf("Negative zero coercion (z) not allowed in string format specifier")
	case sp.alternate:
		return "", fmt.Errorf("Alternate form (#) not allowed in string format specifier")
	case sp.align == '=' && !sp.zeroed:
		return "", fmt.Errorf("'=' alignment not allowed in string format specifier")
	}
	if sp.precision >= 0 {
		if r := []rune(s); len(r) > sp.precision {
			s = string(r[:sp.precision])
		}
	}
	align := sp.align
	if align == 0 || align == '=' {
		align = '<'
	}
	return pad("", s, sp.fill, align, sp.width), nil
}

// pad pads text to a width; a sign stays in front of '=' padding.
func pad(sign, s string, fill rune, align byte, width int) string {
	missing := width - utf8.RuneCountInString(sign) - utf8.RuneCountInString(s)
	if missing <= 0 {
		return sign + s
	}
	repeat := func(n int) string { return strings.Repeat(string(fill), n) }
	switch align {
	case '<':
		return sign + s + repeat(missing)
	case '^':
		return repeat(missing/2) + sign + s + repeat(missing-missing/2)
	case '=':
		return sign + repeat(missing) + s
	}
	return repeat(missing) + sign + s
}

func (sp spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case sp.sign == '+':
		return "+"
	case sp.sign == ' ':
		return " "
	}
	return ""
}

func (sp spec) integer(n *big.Int, class string) (string, error) {
	if sp.verb != 0 && strings.IndexByte("bcdnoxX", sp.verb) < 0 {
		return "", sp.unknownCode(class)
	}
	if sp.precision >= 0 {
		return "", fmt.Errorf("Precision not allowed in integer format specifier")
	}
	if sp.noNegZero {
		return "", fmt.Errorf("Negative zero coercion (z) not allowed in integer format specifier")
	}
	base, prefix, size := 10, "", 3
	switch sp.verb {
	case 0, 'd', 'n':
	case 'b':
		base, prefix, size = 2, "0b", 4
	case 'o':
		base, prefix, size = 8, "0o", 4
	case 'x', 'X':
		base, prefix, size = 16, "0"+string(sp.verb), 4
	case 'c':
		if sp.sign != 0 {
			return "", fmt.Errorf("Sign not allowed with integer format specifier 'c'")
		}
		if sp.alternate {
			return "", fmt.Errorf("Alternate form (#) not allowed with integer format specifier 'c'")
		}
		if !n.IsInt64() {
			return "", PythonError{"OverflowError", "Python int too large to convert to C long"}
		}
		if n.Int64() < 0 || n.Int64() > utf8.MaxRune {
			return "", PythonError{"OverflowError", "%c arg not in range(0x110000)"}
		}
		return sp.finish("", string(rune(n.Int64())), "", size), nil
	}
	if base == 10 {
		if err := tooManyDigits(n); err != nil {
			return "", err
		}
	}
	digits := new(big.Int).Abs(n).Text(base)
	if sp.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	sign := sp.signOf(n.Sign() < 0)
	if sp.alternate {
		sign += prefix
	}
	return sp.finish(sign, digits, "", size), nil
}

// finish groups the digits and pads the number.
func (sp spec) finish(sign, digits, rest string, size int) string {
	align := sp.align
	if align == 0 {
		align = '>'
	}
	if sp.grouping != 0 {
		least := 0
		if align == '=' && sp.fill == '0' {
			least = sp.width - len(sign) - len(rest)
		}
		digits = group(digits, sp.grouping, size, least)
	}
	return pad(sign, digits+rest, sp.fill, align, sp.width)
}

// group inserts separators between the digits, with zeros in front up to a width.
func group(digits string, separator byte, size, least int) string {
	var parts []string
	for len(digits) > size {
		parts = append([]string{digits[len(digits)-size:]}, parts...)
		digits = digits[:len(digits)-size]
	}
	parts = append([]string{digits}, parts...)
	length := func() int { return len(strings.Join(parts, string(separator))) }
	for length() < least {
		if len(parts[0]) == size {
			parts = append([]string{"0"}, parts...)
		} else {
			parts[0] = "0" + parts[0]
		}
	}
	return strings.Join(parts, string(separator))
}

func (sp spec) float(f float64, class string) (string, error) {
	if sp.verb != 0 && strings.IndexByte("eEfFgGn%", sp.verb) < 0 {
		return "", sp.unknownCode(class)
	}
	negative := math.Signbit(f)
	a := math.Abs(f)
	verb, precision, percent := sp.verb, sp.precision, ""
	if verb == '%' {
		a *= 100
		verb, percent = 'f', "%"
	}
	var body string
	switch {
	case math.IsNaN(a) || math.IsInf(a, 0): // a percentage may be infinite although
		body = "inf"
		if math.IsNaN(a) {
			body, negative = "nan", false
		}
		if verb == 'E' || verb == 'F' || verb == 'G' {
			body = strings.ToUpper(body)
		}
	case verb == 'e' || verb == 'E' || verb == 'f' || verb == 'F':
		if precision < 0 {
			precision = 6
		}
		body = strconv.FormatFloat(a, lower(verb), precision, 64)
		if sp.alternate {
			body = pointed(body)
		}
	case verb == 'g' || verb == 'G' || verb == 'n':
		if precision < 0 {
			precision = 6
		}
		body = general(a, max(precision, 1), sp.alternate, false)
	case verb == 0:
		if precision < 0 {
			body = pytext.Float(a)
			if sp.alternate {
				body = pointed(body)
			}
		} else {
			body = general(a, max(precision, 1), sp.alternate, true)
		}
	}
	if verb == 'E' || verb == 'G' {
		body = strings.ToUpper(body)
	}
	if mantissa, _, _ := strings.Cut(strings.ToLower(body), "e"); sp.noNegZero && strings.Trim(mantissa, "0.") == "" {
		negative = false
	}
	digits, rest := body, ""
	if i := strings.IndexAny(body, ".eE"); i >= 0 && isDigit(body[0]) {
		digits, rest = body[:i], body[i:]
	}
	if !isDigit(body[0]) {
		sp.grouping = 0
	}
	return sp.finish(sp.signOf(negative), digits, rest+percent, 3), nil
}

func lower(verb byte) byte { return verb | 0x20 }

// general is %g. With keep, which is Python's repr-like form, a whole number keeps
// one digit after the point.
func general(a float64, precision int, alternate, keep bool) string {
	s := strconv.FormatFloat(a, 'e', precision-1, 64)
	mantissa, exponentText, _ := strings.Cut(s, "e")
	exponent, _ := strconv.Atoi(exponentText)
	limit := precision
	if keep && precision > 0 {
		limit = precision
		if exponent == precision-1 {
			limit = exponent // the repr form uses
		}
	}
	if exponent < -4 || exponent >= limit {
		if !alternate {
			mantissa = trimZeros(mantissa)
		}
		if alternate {
			mantissa = pointed(mantissa)
		}
		return fmt.Sprintf("%se%+03d", mantissa, exponent)
	}
	s = strconv.FormatFloat(a, 'f', precision-1-exponent, 64)
	if !alternate {
		s = trimZeros(s)
	}
	if keep && !strings.Contains(s, ".") {
		s += ".0"
	}
	if alternate {
		s = pointed(s)
	}
	return s
}

// pointed adds the point that the alternate form always has.
func pointed(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	if i := strings.IndexByte(s, 'e'); i >= 0 {
		return s[:i] + "." + s[i:]
	}
	return s + "."
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}
