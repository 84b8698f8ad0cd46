package module_test

import (
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/module"
)

// What a long file imports, by the looks of its lines, is read while it is parsed.
// What turns out to be no import is in no program, and not missed.
func TestImportsOfALongFileAreReadAhead(t *testing.T) {
	text := "import a\ntext = \"\"\"\nimport nosuch\nimport broken\n\"\"\"\n" + strings.Repeat(
		"# filling\n",
		4096,
	) + "import b::c\n"
	p, err := module.OpenProject(project(t, map[string]string{
		"project.yml": "name: p\nmodulepath: libs\n", "main.cf": text,
		"libs/a/module.yml": "name: a\nversion: 1.0\nlicense: none\n", "libs/a/model/_init.cf": "x = 1\n",
		"libs/b/module.yml": "name: b\nversion: 1.0\nlicense: none\n", "libs/b/model/_init.cf": "", "libs/b/model/c.cf": "y = 2\n",
		"libs/broken/module.yml": "name: broken\nversion: 1.0\nlicense: none\n", "libs/broken/model/_init.cf": "x = = 1\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	prog, err := module.NewLoader(p).Load("main.cf", false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range prog.Files {
		names = append(names, f.Namespace)
	}
	if got := strings.Join(names, " "); got != "__config__ b b::c a" {
		t.Errorf("the files are of %s", got)
	}
}
