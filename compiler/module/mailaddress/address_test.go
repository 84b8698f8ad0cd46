package mailaddress

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// What email-validator 2.4 said of addresses, by way of pydantic's NameEmail.
func TestAddresses(t *testing.T) {
	text, err := os.ReadFile("testdata/addresses.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases [][2]string
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	good := 0
	for _, c := range cases {
		if got := Check(c[0]); got != c[1] {
			t.Errorf("%q\n got %s\nwant %s", c[0], got, c[1])
		}
		if c[1] == "" {
			good++
		}
	}
	if good == 0 || good == len(cases) {
		t.Errorf("%d of %d addresses are good", good, len(cases))
	}
}

// No text makes it panic, and what it says is a sentence or a reason.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"a@b.com", "Joe Doe <joe@example.com>", `"a b"@c.de`, "é@ü.de", "a@[1.2.3.4]", "a@xn--", "<<a@b.c>>", `"\`, "＠"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if wrong := Check(text); wrong != strings.TrimSpace(wrong) {
			t.Errorf("%q: %q", text, wrong)
		}
	})
}
