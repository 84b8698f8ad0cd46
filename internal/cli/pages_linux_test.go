package cli

import (
	"reflect"
	"testing"
)

var written = 1 // lies among what can be written to

// What is given back of the program is what nobody can have written to: its
// code is, its variables are not. It is there again when it is touched.
func TestOnlyWhatLiesInTheFileIsForgotten(t *testing.T) {
	program := programPages()
	if !program.have(reflect.ValueOf(TestOnlyWhatLiesInTheFileIsForgotten).Pointer()) {
		t.Errorf("the code is in none of %x", program)
	}
	if variable := reflect.ValueOf(&written).Pointer(); program.have(variable) {
		t.Errorf("a variable at %x is in one of %x", variable, program)
	}
	written = 2
	program.forget()
	if written != 2 {
		t.Error("a variable has its first value again")
	}
}

// A program that is loaded elsewhere than it was linked for is found there.
func TestThePagesOfAProgramThatWasMoved(t *testing.T) {
	headers := []header{
		{kind: kindHeaders, address: 0x40},
		{kind: kindLoad, address: 0, sizeInFile: 0x1234},
		{kind: kindLoad, address: 0x3000, sizeInFile: 0x1000, flags: flagWrite},
		{kind: kindLoad, address: 0x5800, sizeInFile: 0x10},
	}
	found := readOnly(headers, 0x700040, 0x1000)
	if want := (pages{{0x700000, 0x702000}, {0x705000, 0x706000}}); !reflect.DeepEqual(found, want) {
		t.Errorf("found %x, want %x", found, want)
	}
	if found := readOnly(headers[1:], 0x700040, 0x1000); found != nil {
		t.Errorf("found %x without knowing where the program lies", found)
	}
}

func (p pages) have(address uintptr) bool {
	for _, m := range p {
		if m[0] <= address && address < m[1] {
			return true
		}
	}
	return false
}
