package pep440_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/python/pep440"
)

// Versions compare, and conditions hold, as recorded from Python's packaging library.
func TestAgreesWithPackaging(t *testing.T) {
	text, err := os.ReadFile("testdata/packaging.txt")
	if err != nil {
		t.Fatal(err)
	}
	var versions []pep440.Version
	var written []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch f[0] {
		case "version":
			v, err := pep440.Parse(f[1])
			if err != nil {
				t.Fatal(err)
			}
			if v.String() != f[2] {
				t.Errorf("%s reads as %s, want %s", f[1], v, f[2])
			}
			if n := len(versions); n > 0 && pep440.Compare(versions[n-1], v) > 0 {
				t.Errorf("%s is not older than %s", written[n-1], f[1])
			}
			versions, written = append(versions, v), append(written, f[1])
		case "holds":
			s, err := pep440.ParseSpecifiers(f[1])
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range versions {
				if got, want := s.Contains(v, f[2] == "pre"), slices.Contains(f[3:], written[i]); got != want {
					t.Errorf("%s in %s (%s): got %v", written[i], f[1], f[2], got)
				}
			}
		}
	}
	if len(versions) < 20 {
		t.Fatal("the record is not complete")
	}
}

func TestRequirements(t *testing.T) {
	for text, want := range map[string]string{
		"std":                                  "std",
		" std ~= 8.0 ":                         "std~=8.0",
		"my_mod>=1, !=1.3":                     "my_mod>=1,!=1.3",
		"a[x,y] (>=2)":                         "a[x,y]>=2",
		"a @ https://h/x.whl":                  "a @ https://h/x.whl",
		`a>1 ; python_version > "3"`:           `a>1 ; python_version > "3"`,
		`a@git+ssh://git@h/x.git ; extra=="b"`: `a @ git+ssh://git@h/x.git ; extra=="b"`,
	} {
		r, err := pep440.ParseRequirement(text)
		if err != nil || r.String() != want {
			t.Errorf("%q reads as %q, %v; want %q", text, r, err, want)
		}
	}
	for _, text := range []string{"", "two good", "-r file", ">=1", "a>=", "a=>1", "a ~= " +
		"1", "a>=1.*", "a(>1", "a==1.0rc1.*", "a>1+x"} {
		if r, err := pep440.ParseRequirement(text); err == nil {
			t.Errorf("%q reads as %q, want an error", text, r)
		}
	}
}

// Errors say what was expected, and where.
func TestErrorsHaveAPosition(t *testing.T) {
	for text, want := range map[string]string{
		"": `"" is not a requirement: expected the name of a package at character 1`,
		"std ~ 8": `"std ~ 8" is not a requirement: ` +
			`expected a version such as >=1, a semicolon or the end at character 5`,
		"a[x y]": `"a[x y]" is not a requirement: expected a comma at character 5`,
		"a>1 b":  `"a>1 b" is not a requirement: expected a comma, a semicolon or the end at character 5`,
		"a; os_name x": `"a; os_name x" is not a requirement: ` +
			`expected one of <, <=, ==, !=, >=, >, ~=, ===, in and not in at character 12`,
	} {
		if _, err := pep440.ParseRequirement(text); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Tags and requirements come from strangers: what is read and written again stays the
// same.
func FuzzRequirement(f *testing.F) {
	f.Add("a[x]>=1,<2 ; extra in 'b'")
	f.Add("a @ https://x ; os_name == 'y'")
	f.Add("1!2.0rc1.post2.dev3+local.4")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := pep440.ParseRequirement(text); err == nil {
			if again, err := pep440.ParseRequirement(r.String()); err != nil || again.String() != r.String() {
				t.Fatalf("%q reads as %q, and that as %q, %v", text, r, again, err)
			}
		}
		if v, err := pep440.Parse(text); err == nil {
			again, err := pep440.Parse(v.String())
			if err != nil || pep440.Compare(v, again) != 0 {
				t.Fatalf("%q is %s, and that %s, %v", text, v, again, err)
			}
		}
	})
}
