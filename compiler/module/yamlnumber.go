package module

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"ordain.dev/ordain/compiler/pyyaml"
	"ordain.dev/ordain/internal/python/pytext"
)

// oldDigits is a number as YAML 1.1 writes it without underscores.
func oldDigits(text string) string {
	return lower(strings.ReplaceAll(text, "_", ""))
}

// noCharacter is what Python says where it looks for a sign or a digit and the
// text is at its end.
func (c *construction) noCharacter(n *pyyaml.Node) error {
	return c.raise(classIndex, n, "string index out of range")
}

// signed takes the sign from a number.
func (c *construction) signed(n *pyyaml.Node, text string) (negative bool, digits string, err error) {
	switch {
	case text == "":
		return false, "", c.noCharacter(n)
	case text[0] == '-' || text[0] == '+':
		return text[0] == '-', text[1:], nil
	}
	return false, text, nil
}

// integer reads a number as YAML 1.1 writes them: 0b1, 017, 0x1f, 1:30 and 90.
func (c *construction) integer(n *pyyaml.Node, text string) (any, error) {
	negative, digits, err := c.signed(n, strings.ReplaceAll(text, "_", ""))
	if err != nil {
		return nil, err
	}
	if digits == "" {
		return nil, c.noCharacter(n)
	}
	i, problem := new(big.Int), ""
	switch {
	case digits == "0":
	case strings.HasPrefix(digits, "0b"):
		i, problem = pythonInt(digits[2:], 2)
	case strings.HasPrefix(digits, "0x"):
		i, problem = pythonInt(digits[2:], 16)
	case digits[0] == '0':
		i, problem = pythonInt(digits, 8)
	case strings.Contains(digits, ":"):
		for part := range strings.SplitSeq(digits, ":") {
			var d *big.Int
			if d, problem = pythonInt(part, 10); problem != "" {
				break
			}
			i.Mul(i, big.NewInt(60)).Add(i, d)
		}
	default:
		i, problem = pythonInt(digits, 10)
	}
	if problem != "" {
		return nil, c.raise(pyyaml.ClassValue, n, "%s", problem)
	}
	if negative {
		i.Neg(i)
	}
	return i, nil
}

// pythonInt is Python's int(text, base), or what it says of the text.
func pythonInt(text string, base int) (*big.Int, string) {
	digits := strings.Trim(asciiDigits(text), " \t\n\v\f\r")
	negative := strings.HasPrefix(digits, "-")
	if negative || strings.HasPrefix(digits, "+") {
		digits = digits[1:]
	}
	if mark := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]; mark != "" &&
		strings.HasPrefix(strings.ToLower(digits), mark) {
		digits = digits[2:]
	}
	end := 0
	for end < len(digits) && digitValue(digits[end]) < base {
		end++
	}
	if base == 10 && end > pyyaml.MostDigits {
		return nil, pyyaml.TooManyDigits(end)
	}
	if end < len(digits) || end == 0 {
		shown := []rune(pytext.Quote(text))
		return nil, fmt.Sprintf(
			"invalid literal for int() with base %d: %s",
			base,
			string(shown[:min(200, len(shown))]),
		)
	}
	i, _ := new(big.Int).SetString(digits, base)
	if negative {
		i.Neg(i)
	}
	return i, ""
}

func digitValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return int(c|0x20-'a') + 10
	}
	return 36
}

// asciiDigits writes a number in ASCII, as Python does before it reads it: digits
// of all scripts count, and blanks of all kinds.
func asciiDigits(text string) string {
	plain := true
	for i := 0; i < len(text); i++ {
		plain = plain && text[i] < 0x80
	}
	if plain {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f:
			return ' '
		case r < 0x80:
			return r
		}
		for _, block := range unicode.Nd.R16 {
			if r >= rune(block.Lo) && r <= rune(block.Hi) {
				return '0' + (r-rune(block.Lo))%10
			}
		}
		for _, block := range unicode.Nd.R32 {
			if r >= rune(block.Lo) && r <= rune(block.Hi) {
				return '0' + (r-rune(block.Lo))%10
			}
		}
		return '?'
	}, text)
}

var pythonFloatPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|(?i:inf|infinity|nan))$`)
})

// float reads a number with a point as YAML 1.1 writes them.
func (c *construction) float(n *pyyaml.Node, text string) (any, error) {
	negative, digits, err := c.signed(n, oldDigits(text))
	if err != nil {
		return nil, err
	}
	sign := 1.0
	if negative {
		sign = -1
	}
	switch digits {
	case ".inf":
		return sign * math.Inf(1), nil
	case ".nan":
		return math.NaN(), nil
	}
	parts := strings.Split(digits, ":")
	numbers := make([]float64, len(parts))
	for i, part := range parts {
		text := strings.Trim(asciiDigits(part), " \t\n\v\f\r")
		if !pythonFloatPattern().MatchString(text) {
			return nil, c.raise(pyyaml.ClassValue, n, "could not convert string to float: %s", pytext.Quote(part))
		}
		numbers[i], _ = strconv.ParseFloat(text, 64) // what is out of range is infinite
	}
	if len(numbers) == 1 {
		return sign * numbers[0], nil
	}
	// The least digit comes first, as there: the last bit depends on it.
	total, base := 0.0, big.NewInt(1)
	for i := len(numbers) - 1; i >= 0; i-- {
		weight, _ := new(big.Float).SetInt(base).Float64()
		if math.IsInf(weight, 0) {
			return nil, c.raise(classOverflow, n, "int too large to convert to float")
		}
		total += numbers[i] * weight
		base.Mul(base, big.NewInt(60))
	}
	return sign * total, nil
}
