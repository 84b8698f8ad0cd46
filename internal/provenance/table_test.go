package provenance

import (
	"strings"
	"testing"
)

func sample() *Table {
	b, e := NewBuilder(), Entry{}
	made := b.Statement(Statement{Kind: Constructor, Place: Place{File: "main.cf", Line: 9}})
	top := b.Step(Call{Type: "m::A", Implementation: "m::a"}, "m::A[name=x]", TopLevel, made)
	below := b.Step(Call{Type: "m::B", Implementation: "m::b"}, "m::B[name=y]", top, made)
	e.Set(Mark{Name: b.Text("f"), Statement: b.Statement(Statement{Kind: Function, Plugin: "get_f"}), Step: TopLevel})
	argument := b.Statement(Statement{Kind: Argument, Place: Place{File: "main.cf", Line: 3}})
	e.Set(Mark{Depth: 1, Name: b.Text("in"), Statement: argument, Implied: true, Step: below})
	e.Set(Mark{Depth: 2, Name: b.Text("deep"), Statement: argument, Condition: true, Step: top})
	e.Set(Mark{Depth: 1, Name: b.Text("other"), Statement: argument, Step: TopLevel, Own: true})
	b.Add("m::R[a,n=1]", &e)
	return b.Table()
}

// What was packed comes back, with the chain from the statement to the top.
func TestPackedTable(t *testing.T) {
	packed, err := sample().Pack()
	if err != nil {
		t.Fatal(err)
	}
	table, err := Unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	fields, ok := table.Explain("m::R[a,n=1]")
	if !ok || len(fields) != 1 || len(fields[0].Settings) != 1 || len(fields[0].Settings[0].Inputs) != 2 {
		t.Fatalf("%+v", fields)
	}
	in := fields[0].Settings[0].Inputs[0].Settings[0]
	if !in.Implied || in.Line != 3 || len(in.Steps) != 2 || in.Steps[0].Instance != "m::B[name=y]" ||
		in.Steps[1].Implementation != "m::a" ||
		in.Steps[1].Made.Line != 9 {
		t.Errorf("%+v", in)
	}
	other := fields[0].Settings[0].Inputs[1]
	if other.Name != "other" || other.Settings[0].Line != 3 || len(other.Settings[0].Steps) != 0 {
		t.Errorf("the other: %+v", other)
	}
	deep := in.Inputs
	if len(deep) != 1 || deep[0].Name != "deep" || !deep[0].Settings[0].Condition || deep[0].Settings[0].Implied {
		t.Errorf("below it: %+v", deep)
	}
	if _, ok := table.Explain("m::R[a,n=2]"); ok {
		t.Error("it knows what it was not told")
	}
}

// A damaged table is refused, whatever it holds, and never read out of bounds.
func FuzzUnpack(f *testing.F) {
	packed, err := sample().Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	for _, damage := range []func(*Table){
		func(t *Table) { t.Steps[1][2] = 1 },
		func(t *Table) { t.Shapes[0][1][4] = 7 },
		func(t *Table) { t.Resources["x"] = []int{0} },
		func(t *Table) { t.Shapes[0][0][0] = 1 },
		func(t *Table) { t.Shapes[0][0][2] = -9 },
		func(t *Table) { t.Resources["m::R[a,n=1]"][3] = 99 },
	} {
		table := sample()
		damage(table)
		packed, err := table.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		table, err := Unpack(packed)
		if err != nil {
			return
		}
		for id := range table.Resources {
			table.Explain(id)
		}
	})
}

// A name that somebody chose for their commits cannot move the cursor, end the
// line or turn the text around, nor be endless.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"Ada Lovelace": "Ada Lovelace", "Zoë 王": "Zoë 王", "a\nb\tc": "a b c", "\x1b[2J": "␛[2J",
		"x\u202ey": "x\ufffdy", "\xff": "\ufffd", "\u009b1m": "\ufffd1m",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
	if got := Clean(strings.Repeat("x", 10_000)); len(got) > shownText+4 {
		t.Errorf("%d bytes are kept", len(got))
	}
}
