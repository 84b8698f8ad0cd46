package pep440_test

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/python/pep440"
)

// What real requirements files have is allowed; what reads or runs files of the machine is not.
func TestLinesOfRequirements(t *testing.T) {
	for text, want := range map[string]string{
		`requests`: "requests",
		`requests[socks] >= 2, < 3 ; python_version < "3.12"`: `requests[socks] >= 2, < 3 ; python_version < "3.12"`,
		`x @ https://host/x-1.0.tar.gz`:                       `x @ https://host/x-1.0.tar.gz`,
		`x @ git+https://host/x.git@v1`:                       `x @ git+https://host/x.git@v1`,
		`git+ssh://git@host/x.git#egg=x`:                      `git+ssh://git@host/x.git#egg=x`,
		"x==1 --hash=sha256:ab --hash sha256:cd":              "x==1 --hash=sha256:ab --hash=sha256:cd",
		"-r more.txt":                                         "include more.txt",
		"-rmore.txt":                                          "include more.txt",
		"--requirement=sub/more.txt":                          "include sub/more.txt",
		"--constraint limits.txt":                             "constraint limits.txt",
		"-c limits.txt":                                       "constraint limits.txt",

		"-e /srv/secret":                   "! the option -e ",
		"--editable=/srv/secret":           "! the option --editable ",
		"-f /srv":                          "! the option -f ",
		"--find-links=/srv/secret":         "! the option --find-links ",
		"--index-url https://secret/":      "! the option --index-url ",
		"--extra-index-url file:///secret": "! the option --extra-index-url ",
		"--trusted-host secret":            "! the option --trusted-host ",
		"x==1 --config-settings=a=secret":  "! the option --config-settings ",
		"- /etc/secret":                    "! the option - ",
		"x @ file:///srv/secret":           "! a file or folder of this machine",
		"x @ /srv/secret":                  "! a file or folder of this machine",
		"x@file:secret":                    "! a file or folder of this machine",
		"file:///srv/secret":               "! a file or folder of this machine",
		"git+file:///srv/secret":           "! a file or folder of this machine",
		"x @ ftp://host/secret":            "! addresses must begin with",
		"./secret":                         "! it is a path",
		"/srv/secret":                      "! it is a path",
		"~/secret":                         "! it is a path",
		"secret-1.0-py3-none-any.whl":      "! it is a path",
		"x @ https://host/${UV_INDEX}":     "! an environment variable",
		"${HOME}/secret":                   "! an environment variable",
		"two words":                        "! it is not a requirement",
	} {
		line, err := pep440.ParseLine(text, false)
		got := line.String()
		switch {
		case err != nil:
			got = "! " + err.Error()
		case line.Include != "" && line.Constraint:
			got = "constraint " + line.Include
		case line.Include != "":
			got = "include " + line.Include
		}
		if refused, ok := strings.CutPrefix(want, "! "); ok {
			if err == nil || !strings.Contains(got, refused) || strings.Contains(got, "secret") {
				t.Errorf("%q: got %s, want %s", text, got, want)
			}
			continue
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if _, err := pep440.ParseLine("x @ file:///home/me/x", true); err != nil {
		t.Errorf("a person's own file: %v", err)
	}
}
