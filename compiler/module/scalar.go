package module

import (
	"encoding/base64"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The words and numbers of YAML 1.1, which inmanta-core reads project files as.
// The library reads YAML 1.2, where `yes` is a text and 1:30 is no number.
var (
	truthWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:(yes|Yes|YES|true|True|TRUE|on|On|ON)|no|No|NO|false|False|FALSE|off|Off|OFF)$`)
	})
	intText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^[-+]?(?:0b[0-1_]+|0[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*|[1-9][0-9_]*(?::[0-5]?[0-9])+)$`,
		)
	})
	floatText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?` +
				`|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`,
		)
	})
	dateText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\d{4}-(?:\d\d-\d\d|\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?` +
			`(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?)$`)
	})
)

// scalar returns what a scalar means: nil, a bool, *big.Int, float64, string or
// other. Of a scalar that does not fit its tag, wrong says what it is not.
func scalar(n *yaml.Node) (is any, wrong string) {
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style != 0 { // quoted, or a block of text
			return n.Value, ""
		}
		return plainScalar(n.Value), ""
	}
	is = plainScalar(n.Value)
	fits := false
	switch n.ShortTag() {
	case "!!str":
		return n.Value, ""
	case "!!null":
		return nil, ""
	case "!!binary":
		text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		is, fits, wrong = string(text), err == nil && utf8.Valid(text), "the base64 of a text"
	case "!!timestamp":
		_, fits = is.(other)
		wrong = "a date"
	case "!!bool":
		_, fits = is.(bool)
		wrong = "true or false"
	case "!!int":
		_, fits = is.(*big.Int)
		wrong = aNumber
	case "!!float":
		if i, ok := is.(*big.Int); ok {
			is, _ = new(big.Float).SetInt(i).Float64()
		}
		_, fits = is.(float64)
		wrong = aNumber
	default:
		wrong = "of a kind that project files have"
	}
	if fits {
		return is, ""
	}
	return nil, wrong
}

const aNumber = "a number"

func plainScalar(text string) any {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil
	}
	if m := truthWord().FindStringSubmatch(text); m != nil {
		return m[1] != ""
	}
	if !strings.ContainsAny(text[:1], "+-.0123456789") {
		return text
	}
	switch {
	case intText().MatchString(text):
		if i, ok := integer(strings.ReplaceAll(text, "_", "")); ok {
			return i
		}
	case floatText().MatchString(text):
		return float(strings.ToLower(strings.ReplaceAll(text, "_", "")))
	case dateText().MatchString(text):
		return other("a date")
	}
	return text
}

// integer reads 0b1, 017, 0x1f, 90, and 1:30, which is ninety too.
func integer(text string) (*big.Int, bool) {
	if !strings.Contains(text, ":") {
		return new(big.Int).SetString(text, 0)
	}
	digits := strings.TrimLeft(text, "+-")
	i := new(big.Int)
	for part := range strings.SplitSeq(digits, ":") {
		d, _ := new(big.Int).SetString(part, 10)
		i.Mul(i, big.NewInt(60)).Add(i, d)
	}
	if text[0] == '-' {
		i.Neg(i)
	}
	return i, true
}

func float(text string) float64 {
	digits, sign := strings.TrimLeft(text, "+-"), 1.0
	if text[0] == '-' {
		sign = -1
	}
	switch digits {
	case ".inf":
		return math.Inf(int(sign))
	case ".nan":
		return math.NaN()
	}
	f := 0.0
	for part := range strings.SplitSeq(digits, ":") {
		d, _ := strconv.ParseFloat(part, 64) // what is out of range is infinite
		f = f*60 + d
	}
	return sign * f
}
