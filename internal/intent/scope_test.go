package intent

import (
	"strings"
	"testing"
)

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		patterns string
		has, not string
	}{
		{"", "a a/b", ""},
		{"shop", "shop shop/main.cf shop/a/b", "shops/main.cf a/shop README.md"},
		{"/shop/\nlibs/web", "shop/x libs/web/model/_init.cf", "libs/webs/x libs"},
		{"*.cf", "main.cf", "a/main.cf main.cfg"},
		{"**/*.cf", "main.cf a/main.cf a/b/c.cf", "a/b/c.txt"},
		{"shop\n!shop/docs", "shop/a", "shop/docs/x shop/docs"},
		{"!docs", "main.cf a/docs", "docs/x"},
		{"a?c", "abc/x", "abbc a/c"},
		{"a.b", "a.b", "axb"},
	} {
		s, err := ParseScope(tt.patterns)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range strings.Fields(tt.has) {
			if !s.Has(p) {
				t.Errorf("%q has not %s", tt.patterns, p)
			}
		}
		for _, p := range strings.Fields(tt.not) {
			if s.Has(p) {
				t.Errorf("%q has %s", tt.patterns, p)
			}
		}
	}
	for _, bad := range []string{"../x", "a/../b", strings.Repeat("x", 501), strings.Repeat("a\n", 201)} {
		if _, err := ParseScope(bad); err == nil {
			t.Errorf("%.20q was taken", bad)
		}
	}
}

func FuzzScope(f *testing.F) {
	f.Add("shop\n!shop/docs\n**/*.cf", "shop/a.cf")
	f.Fuzz(func(_ *testing.T, patterns, path string) {
		if s, err := ParseScope(patterns); err == nil {
			s.Has(path)
		}
	})
}
