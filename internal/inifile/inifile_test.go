package inifile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/internal/inifile"
)

// Files are read as Python's configparser reads them.
func TestParse(t *testing.T) {
	type values = map[string]inifile.Value
	for name, c := range map[string]struct {
		text string
		want inifile.File
	}{
		"both delimiters, keys in lower case": {
			"[a]\nx = 1\nName: a=b:c\nempty=\n",
			inifile.File{"a": values{"x": {"1", 2}, "name": {"a=b:c", 3}, "empty": {"", 4}}},
		},
		"comments only on lines of their own": {
			"# c\n; c\n[a] # c\nx = 1 # c\n",
			inifile.File{"a": values{"x": {"1 # c", 4}}},
		},
		"a value of several lines, with a comment and a blank line in it": {
			"[options]\ninstall_requires =\n  a>=1\n\n  # c\n# c\n\tb\n\ny = 2\n",
			inifile.File{"options": values{"install_requires": {"\na>=1\n\nb", 2}, "y": {"2", 9}}},
		},
		"a key that is indented as the one above it": {
			"[a]\n  x = 1\n  y = 2\n    3\n",
			inifile.File{"a": values{"x": {"1", 2}, "y": {"2\n3", 3}}},
		},
		"DEFAULT several times": {
			"[DEFAULT]\nx = 1\n[a]\n[DEFAULT]\ny = 2\n",
			inifile.File{"DEFAULT": values{"x": {"1", 2}, "y": {"2", 5}}, "a": values{}},
		},
		"line ends of other systems": {
			"[a]\r\nx = 1\r  2\r\n",
			inifile.File{"a": values{"x": {"1\n2", 2}}},
		},
		"percent signs stay": {
			"[a]\nx = 100%\ny = %(x)s\n",
			inifile.File{"a": values{"x": {"100%", 2}, "y": {"%(x)s", 3}}},
		},
		"nothing": {"", inifile.File{}},
	} {
		got, err := inifile.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: want -, got +:\n%s", name, d)
		}
	}
}

// All wrong lines of a file are reported at once, by number.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]inifile.Error{
		"x = 1\ny = 2\n": {{1, "`x = 1` stands before the first section"}},
		"[a]\nx = 1\nword\n[a]\nx = 2\nX = 3\n": {
			{3, "`word` is neither `key = value` nor the name of a section"},
			{4, "section [a] appears twice"},
			{5, "key x appears twice in section [a]"},
			{6, "key x appears twice in section [a]"},
		},
		"[]\n[a\n":   {{1, "`[]` stands before the first section"}},
		"[a]\n= 1\n": {{2, "`= 1` is neither `key = value` nor the name of a section"}},
	} {
		_, err := inifile.Parse(text)
		got, _ := err.(inifile.Error)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: want -, got +:\n%s", text, d)
		}
	}
}

func TestGetFallsBackToDefault(t *testing.T) {
	f, err := inifile.Parse("[DEFAULT]\nx = 1\ny = 2\n[a]\nx = 3\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ section, key, want string }{
		{"a", "x", "3"}, {"a", "y", "2"}, {"a", "z", ""}, {"b", "x", ""},
	} {
		if v, _ := f.Get(c.section, c.key); v.Text != c.want {
			t.Errorf("[%s] %s is %q, want %q", c.section, c.key, v.Text, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[a]\nx = 1\n  2\n[DEFAULT]\ny: 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := inifile.Parse(text)
		if (file == nil) == (err == nil) {
			t.Errorf("%v and %v", file, err)
		}
	})
}
