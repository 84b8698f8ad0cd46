package provenance

import (
	"testing"
	"time"
)

// The line that was committed last is found wherever it is: here the argument that a
// plug-in was given, which a variable got from the top level.
func TestNewest(t *testing.T) {
	at := func(day int) *Commit { return &Commit{ID: "c", Date: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)} }
	setting := func(line int, c *Commit, inputs ...Field) Setting {
		return Setting{Statement: Statement{Place: Place{File: "main.cf", Line: line}}, Commit: c, Inputs: inputs}
	}
	motd := Field{Name: "self.motd", Settings: []Setting{setting(17, at(9))}}
	text := Field{Name: "text", Settings: []Setting{setting(5, at(2), motd)}}
	f := Field{Name: "content", Settings: []Setting{setting(58, at(3), text)}}
	if place, commit := Newest(f); place.Line != 17 || commit == nil || commit.Date.Day() != 9 {
		t.Errorf("%+v by %+v", place, commit)
	}
	if _, commit := Newest(Field{Settings: []Setting{setting(1, nil)}}); commit != nil {
		t.Errorf("a commit from nowhere: %+v", commit)
	}
}
