package pytext_test

import (
	"encoding/hex"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/python/pytext"
	"ordain.dev/ordain/internal/testing/tool"
)

func TestDecodeError(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		"Zürich 🙂":         "",
		"ab\xff":           "'utf-8' codec can't decode byte 0xff in position 2: invalid start byte",
		"\xe9t\xe9":        "'utf-8' codec can't decode byte 0xe9 in position 0: invalid continuation byte",
		"ü\xc3":            "'utf-8' codec can't decode byte 0xc3 in position 2: unexpected end of data",
		"\xf0\x9f\x99":     "'utf-8' codec can't decode bytes in position 0-2: unexpected end of data",
		"\xf0\x9f\x99 x":   "'utf-8' codec can't decode bytes in position 0-2: invalid continuation byte",
		"\xed\xa0\x80":     "'utf-8' codec can't decode byte 0xed in position 0: invalid continuation byte",
		"\xf4\x90\x80\x80": "'utf-8' codec can't decode byte 0xf4 in position 0: invalid continuation byte",
	} {
		if got := pytext.DecodeError([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Python says the same of random bytes.
func TestDecodeErrorOfPython(t *testing.T) {
	bytes := []byte{
		'a',
		0x80,
		0x8f,
		0x90,
		0x9f,
		0xa0,
		0xbf,
		0xc0,
		0xc1,
		0xc2,
		0xdf,
		0xe0,
		0xe1,
		0xed,
		0xef,
		0xf0,
		0xf3,
		0xf4,
		0xf5,
		0xff,
	}
	var texts [][]byte
	var in strings.Builder
	for range 20000 {
		text := make([]byte, rand.IntN(6))
		for i := range text {
			text[i] = bytes[rand.IntN(len(bytes))]
		}
		texts = append(texts, text)
		in.WriteString(hex.EncodeToString(text) + "\n")
	}
	cmd := exec.Command("python3", "-c", `
import sys
for line in sys.stdin:
    try:
        bytes.fromhex(line).decode()
        print()
    except UnicodeDecodeError as e:
        print(e)
`)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		tool.Missing(t, "python3 does not run on this machine: %v", err)
	}
	for i, want := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		if got := pytext.DecodeError(texts[i]); got != want {
			t.Fatalf("% x: %q, Python says %q", texts[i], got, want)
		}
	}
}
