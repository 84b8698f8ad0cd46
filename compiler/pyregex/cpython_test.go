package pyregex

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"
)

// asked is CPython's answer for a pattern.
type asked struct {
	pattern   string
	complaint string
	answers   []answer
}

type answer struct {
	text  string
	spans [][2]int // of the match and its groups, in characters; nil: no match
}

func (a *asked) UnmarshalJSON(data []byte) error {
	var complaint *string
	if err := json.Unmarshal(data, &[]any{&a.pattern, &complaint, &a.answers}); err != nil {
		return err
	}
	if complaint != nil {
		a.complaint = *complaint
	}
	return nil
}

func (a *answer) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&a.text, &a.spans})
}

// check compares the package's answer, including the ends of matches and the groups,
// because a wrong group changes the outcome of few patterns.
func (a asked) check(t *testing.T) {
	t.Helper()
	r, err := Compile(a.pattern, names)
	complaint := ""
	if err != nil {
		complaint = err.Error()
	}
	if complaint != a.complaint {
		t.Errorf("%q: %q, Python says %q", a.pattern, complaint, a.complaint)
		return
	}
	for _, b := range a.answers {
		if got, err := spans(r, b.text); err != nil || !reflect.DeepEqual(got, b.spans) {
			t.Errorf("%q on %q: %v (%v), Python gives %v", a.pattern, b.text, got, err, b.spans)
			return
		}
	}
}

func spans(r *Regexp, text string) ([][2]int, error) {
	m := new(machine)
	ok, err := m.run(r, text, 5*time.Second)
	if !ok || err != nil {
		return nil, err
	}
	all := [][2]int{{0, utf8.RuneCountInString(text[:m.end])}}
	for g := 1; g <= r.groups; g++ {
		span := [2]int{-1, -1}
		if from, to, held := m.held(g); held {
			span = [2]int{utf8.RuneCountInString(text[:from]), utf8.RuneCountInString(text[:to])}
		}
		all = append(all, span)
	}
	return all, nil
}

// CPython 3.13's answers for patterns that were once matched wrongly, and for some random
// ones.
func TestRecordedAnswers(t *testing.T) {
	file, err := os.Open("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if n := checkAll(t, file); n.patterns < 500 || n.refused < 50 || n.matches < 1000 {
		t.Errorf("there is little to compare: %+v", n)
	}
}

type counts struct{ patterns, refused, texts, matches int }

func checkAll(t *testing.T, answers io.Reader) (n counts) {
	lines := bufio.NewScanner(answers)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var a asked
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		a.check(t)
		n.patterns++
		if a.complaint != "" {
			n.refused++
		}
		for _, b := range a.answers {
			n.texts++
			if b.spans != nil {
				n.matches++
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// With PYREGEX_PYTHON=python3.13, the test asks CPython itself about PYREGEX_COUNT new
// patterns with 8 texts each, starting from PYREGEX_SEED.
func TestAgainstCPython(t *testing.T) {
	python := os.Getenv("PYREGEX_PYTHON")
	if python == "" {
		t.Skip("PYREGEX_PYTHON names no interpreter")
	}
	setting := func(name, otherwise string) string {
		if v := os.Getenv(name); v != "" {
			return v
		}
		return otherwise
	}
	seed := setting("PYREGEX_SEED", strconv.FormatInt(time.Now().UnixNano(), 10))
	t.Logf("PYREGEX_SEED=%s", seed)
	child := exec.Command(python, "testdata/generate.py", seed, setting("PYREGEX_COUNT", "20000"))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	n := checkAll(t, out)
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", n)
}
