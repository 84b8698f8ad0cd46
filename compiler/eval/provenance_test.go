package eval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/eval"
)

const provenanceModel = `entity Service:
    string name
    int port = 80
end
entity Host:
    string name
    string? note = null
end
index Host(name)
Service.hosts [0:] -- Host.service [1]
Service.all [0:] -- Host

implementation web for Service:
    for n in ["a", "b"]:
        Host(name=n, service=self)
    end
    self.all = self.hosts
end
implementation none for Host:
end
implement Service using web
implement Host using none

s = Service(name="shop")
s.hosts += Host(name="c", note="by hand")
`

// settings shows where the values of an attribute were set, one line each.
func settings(i *eval.Instance, attribute string) string {
	var lines []string
	for _, s := range i.Settings(nil, attribute) {
		line := fmt.Sprintf("%d", s.At.Start.Line)
		if s.Expr != nil {
			line += fmt.Sprintf(" through %d", s.Expr.Start.Line)
		}
		if s.Implied {
			line += " implied"
		}
		if s.By != nil {
			line += fmt.Sprintf(" in %s chosen at %d for %s", s.By.Implementation(), s.By.Selected().Start.Line,
				s.By.Instance().Entity().Name)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// Every way to set an attribute leaves a trace: the line, the implementation that
// ran and the statement that chose it.
func TestWhereValuesWereSet(t *testing.T) {
	result := compile(t, map[string]string{"main.cf": provenanceModel}, []string{"main.cf"})
	if result.Err != nil {
		t.Fatal(result.Err.Trace())
	}
	byName := map[string]*eval.Instance{}
	for _, i := range result.Instances {
		v, _ := i.Value(i.Entity().Attribute("name"))
		byName[fmt.Sprint(v)] = i
	}
	const inWeb = " in __config__::web chosen at 21 for __config__::Service"
	for _, want := range [][3]string{
		{"shop", "name", "24"},
		{"shop", "port", "3"},
		{"shop", "hosts", "15 implied" + inWeb + "; 15 implied" + inWeb + "; 25"},
		{"shop", "all", "15 through 17" + inWeb + "; 15 through 17" + inWeb + "; 25 through 17" + inWeb},
		{"a", "name", "15" + inWeb},
		{"a", "service", "15" + inWeb},
		{"a", "note", "7" + inWeb},
		{"c", "service", "25 implied"},
		{"c", "note", "25"},
		{"c", "requires", ""},
	} {
		if got := settings(byName[want[0]], want[1]); got != want[2] {
			t.Errorf("%s.%s was set at %s, not %s", want[0], want[1], got, want[2])
		}
	}
	made := byName["a"].MadeBy()
	if made == nil || made.Instance() != byName["shop"] || made.At().Start.Line != 13 {
		t.Errorf("a was made by %+v", made)
	}
	if made := byName["c"].MadeBy(); made != nil {
		t.Errorf("c was made at the top level, not by %+v", made)
	}
}
