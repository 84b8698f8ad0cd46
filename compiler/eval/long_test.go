package eval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/eval"
)

// A long file is resolved in two parts at once. What is told of it stands in the
// order of its lines all the same, and nothing of it is lost.
func TestALongFileIsToldOfInItsOrder(t *testing.T) {
	const lines = 900
	model := slices.Repeat([]string{""}, lines)
	for n := range model {
		model[n] = fmt.Sprintf("T(name='%d')", n+1)
	}
	for n, text := range map[int]string{
		0: "entity T:", 1: "    string name", 2: "end", 3: "implement T using none", 4: "implementation none for " +
			"T:", 5: "end",
		20: "x = number('1')", 880: "y = number(x)",
	} {
		model[n] = text
	}
	result := compile(t, map[string]string{"main.cf": strings.Join(model, "\n")}, []string{"main.cf"})
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	if got, want := len(result.Instances), lines-8; got != want {
		t.Errorf("%d instances, not %d", got, want)
	}
	if got, want := warned(result), []int{21, 881}; !slices.Equal(got, want) {
		t.Errorf("warned of lines %v, not %v", got, want)
	}

	model[100], model[300], model[800] = "T(nam='a')", "Nothing(name='a')", "T(nme='a')"
	result = compile(t, map[string]string{"main.cf": strings.Join(model, "\n")}, []string{"main.cf"})
	var at []int
	for _, d := range result.Diagnostics() {
		at = append(at, d.Location.Line)
	}
	if want := []int{101, 301, 801}; !slices.Equal(at, want) {
		t.Errorf("errors in lines %v, not %v", at, want)
	}
}

// The same lines twice, far apart, are resolved at once: what they share is
// shared safely. The race detector watches.
func TestThePartsOfALongFileShareWhatIsDefined(t *testing.T) {
	const half = 250
	names := ""
	for n := range 2 * half {
		name := fmt.Sprintf("n%d", n)
		names += fmt.Sprintf("%s = T(name='%s', more=[U(text='{{ x }}'), U(text=f'{x}')])\n", name, name)
		names += fmt.Sprintf(
			"if %s.more is defined:\n    n = x == 'ab' and true ? string(number('%d')) : %s.name\nend\n",
			name,
			n,
			name,
		)
	}
	definitions := `
entity T:
    string name
end
entity U:
    string text
    string seen = ""
end
T.more [0:] -- U.of [1]
index T(name)
implementation none for T:
end
implementation nothing for U:
end
implement T using none
implement U using nothing
x = "ab"
`
	result := compile(t, map[string]string{"main.cf": names + definitions}, []string{"main.cf"})
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	if got, want := len(result.Instances), 3*2*half; got != want {
		t.Errorf("%d instances, not %d", got, want)
	}
}

func warned(result *eval.Result) (lines []int) {
	for _, w := range result.Warnings {
		lines = append(lines, int(w.At.Start.Line))
	}
	return lines
}
