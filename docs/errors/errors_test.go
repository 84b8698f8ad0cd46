package errors_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/docs/errors"
	"ordain.dev/ordain/internal/diag"
)

// Every code has a page, and every page is about a code.
func TestEveryCodeHasAPage(t *testing.T) {
	have := errors.Codes()
	for _, code := range diag.Codes() {
		if !slices.Contains(have, code) {
			t.Errorf("%s has no page", code)
		}
	}
	contents, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range have {
		if !slices.Contains(diag.Codes(), code) {
			t.Errorf("%s.md is about a code that there is not", code)
		}
		if !strings.HasPrefix(errors.Title(code), code+": ") {
			t.Errorf("%s.md has the title %q", code, errors.Title(code))
		}
		if !strings.Contains(string(contents), "("+code+".md)") {
			t.Errorf("README.md does not list %s", code)
		}
	}
}

var fence = regexp.MustCompile("(?s)```(model|text|console)\n(.*?)```\n")

// example is what a page shows: models, the second of which is mended, or a
// command that is given in the folder of the first; and what is printed, which
// stands at a place of the page.
type example struct {
	models  []string
	command []string
	shown   string
	from    int
}

func exampleOf(page string) (e example) {
	for _, m := range fence.FindAllStringSubmatchIndex(page, -1) {
		text := page[m[4]:m[5]]
		switch page[m[2]:m[3]] {
		case "model":
			e.models = append(e.models, text)
		case "text":
			e.shown, e.from = text, m[4]
		case "console": // the command on the first line, what it prints below
			line, printed, _ := strings.Cut(text, "\n")
			e.command = strings.Fields(strings.TrimPrefix(line, "$ ordain"))
			e.shown, e.from = printed, m[4]+len(line)+1
		}
	}
	return e
}

// TestExamples compiles the example of every page, or gives its command, which
// has to give the code of the page and to print what the page shows, and the
// mended example, which has to compile. ORDAIN_UPDATE=1 rewrites what is shown.
func TestExamples(t *testing.T) {
	cache := t.TempDir()
	for _, code := range errors.Codes() {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			page, _ := errors.Page(code)
			e := exampleOf(page)
			var printed string
			var codes []string
			switch {
			case e.command != nil:
				printed, codes = command(t, cache, e)
			case e.models != nil:
				printed, codes = run(t, cache, e.models[0], code)
			default:
				t.Fatal("the page has no example")
			}
			if !slices.Contains(codes, code) {
				t.Errorf("the example gives %q:\n%s", codes, printed)
			}
			if printed != e.shown && os.Getenv("ORDAIN_UPDATE") != "" {
				page = page[:e.from] + printed + page[e.from+len(e.shown):]
				if err := os.WriteFile(code+".md", []byte(page), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if printed != e.shown {
				t.Errorf("printed:\n%s\nthe page shows:\n%s", printed, e.shown)
			}
			for _, mended := range e.models[min(1, len(e.models)):] {
				if printed, codes := run(t, cache, mended, code); codes != nil {
					t.Errorf("the mended example gives:\n%s", printed)
				}
			}
		})
	}
}

var codeOf = regexp.MustCompile(`(?:error\[|"code": ")([EW]\d{4})`)

// command returns a command in the folder of a model, if there is one.
func command(t *testing.T, cache string, e example) (printed string, codes []string) {
	t.Helper()
	args := e.command
	if e.models != nil {
		dir, _ := project(t, e.models[0])
		args = slices.Concat(args, []string{"--project", dir, "--cache-dir", cache})
	}
	var out strings.Builder
	if status := cli.Main(args, strings.NewReader(""), &out, &out); status == 0 {
		t.Errorf("ordain %v succeeds", args)
	}
	for _, m := range codeOf.FindAllStringSubmatch(out.String(), -1) {
		codes = append(codes, m[1])
	}
	return out.String(), codes
}

// project writes a project that an archive describes to a folder. What every
// project has is left out of the examples: project.yml, the descriptions of
// modules, and a std in which there is nothing but std::none. python is an
// interpreter, if there is code for one.
func project(t *testing.T, archive string) (dir, python string) {
	t.Helper()
	files := map[string]string{
		"project.yml":             "name: example\nmodulepath: libs\n",
		"libs/std/model/_init.cf": "implementation none for Entity:\nend\nentity Dataclass:\nend\n",
	}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name, text := f.Name, string(f.Data)
		if plain, ok := strings.CutSuffix(name, " (saved as Latin-1)"); ok {
			name, text = plain, latin1(text)
		}
		files[name] = text
		if strings.HasSuffix(name, ".py") {
			python = interpreter(t)
		}
	}
	if main, ok := files["main.cf"]; ok && !strings.Contains(main, "import std\n") &&
		strings.Contains(archive, "std::") {
		files["main.cf"] = main + "import std\n" // below, so that lines stay
	}
	dir = t.TempDir()
	for name := range maps.Clone(files) {
		if parts := strings.Split(name, "/"); parts[0] == "libs" {
			offer(files, "libs/"+parts[1]+"/module.yml",
				fmt.Sprintf("name: %s\nversion: 1.0\nlicense: none\n", parts[1]))
			offer(files, "libs/"+parts[1]+"/model/_init.cf", "")
		}
	}
	for name, text := range files {
		if text != "(not there)\n" {
			write(t, filepath.Join(dir, name), text)
		}
	}
	return dir, python
}

// run compiles the project of an archive, for the page of a code.
func run(t *testing.T, cache, archive, page string) (printed string, codes []string) {
	t.Helper()
	dir, python := project(t, archive)
	options := compiler.Options{
		Project: dir, NoStd: true, Python: python, CacheDir: cache, MaxIterations: 1000,
		Export: strings.HasPrefix(page, "E05"),
	}
	if page == "E0901" { // no model is known to do it, so it is done to this one, in the midst of its compile
		options.OnStage = func(string) { panic("index out of range [3] with length 3") }
	}
	out := compiler.Run(context.Background(), options)
	said := slices.Clone(out.Document.Diagnostics)
	for _, w := range diag.Unique(out.Document.Warnings) {
		if w.Code != "W0402" || page == "W0402" { // the modules of the examples
			said = append(said, w)
		}
	}
	for _, d := range said {
		codes = append(codes, d.Code)
		for _, cause := range d.Causes {
			codes = append(codes, cause.Code)
		}
	}
	if page == "E0208" && out.Result.Err != nil { // told in the document of --model-json alone
		codes = append(codes, diag.Code(out.Result.Err.Class()))
	}
	text := diag.Style{}.RenderAll(said)
	text = strings.ReplaceAll(text, dir+string(filepath.Separator), "")
	return strings.ReplaceAll(text, dir, "the folder"), codes
}

// offer is a file that is there unless the example has one of its own.
func offer(files map[string]string, name, text string) {
	if _, ok := files[name]; !ok {
		files[name] = text
	}
}

// latin1 is how an editor that knows nothing of UTF-8 saves a text.
func latin1(text string) string {
	var saved []byte
	for _, r := range text {
		saved = append(saved, byte(r))
	}
	return string(saved)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func interpreter(t *testing.T) string {
	t.Helper()
	found, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("no python3 on this machine")
	}
	return strings.TrimSpace(string(found))
}
