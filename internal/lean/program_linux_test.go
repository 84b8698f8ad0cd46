package lean

import (
	"reflect"
	"testing"
)

var written = 1 // lies among what can be written to

// What is given back of the program is what nobody can have written to: its
// code is, its variables are not. It is there again when it is touched.
func TestOnlyWhatLiesInTheFileIsForgotten(t *testing.T) {
	if !has(reflect.ValueOf(TestOnlyWhatLiesInTheFileIsForgotten).Pointer()) {
		t.Errorf("the code is in none of %x", parts)
	}
	if variable := reflect.ValueOf(&written).Pointer(); has(variable) {
		t.Errorf("a variable at %x is in one of %x", variable, parts)
	}
	written = 2
	Forget()
	if written != 2 {
		t.Error("a variable has its first value again")
	}
}

func has(address uintptr) bool {
	for _, m := range parts {
		if m[0] <= address && address < m[1] {
			return true
		}
	}
	return false
}

// A program that is loaded elsewhere than it was linked for is found there.
func TestThePartsOfAProgramThatWasMoved(t *testing.T) {
	headers := []header{
		{kind: kindHeaders, address: 0x40},
		{kind: kindLoad, address: 0, sizeInFile: 0x1234},
		{kind: kindLoad, address: 0x3000, sizeInFile: 0x1000, flags: flagWrite},
		{kind: kindLoad, address: 0x5800, sizeInFile: 0x10},
	}
	found := readOnly(headers, 0x700040, 0x1000)
	if want := [][2]uintptr{{0x700000, 0x702000}, {0x705000, 0x706000}}; !reflect.DeepEqual(found, want) {
		t.Errorf("found %x, want %x", found, want)
	}
	if found := readOnly(headers[1:], 0x700040, 0x1000); found != nil {
		t.Errorf("found %x without knowing where the program lies", found)
	}
}

// Of what Linux lists, the code of libraries is found: not their data, not the
// program, not what lies in no file.
func TestTheCodeOfLibraries(t *testing.T) {
	found := code([]byte(`00400000-01490000 r-xp 00000000 fe:00 10134582                           /usr/bin/program
7f4d1c000000-7f4d1c026000 r--p 00000000 fe:00 326269                     /usr/lib/x86_64-linux-gnu/libc.so.6
7f4d1c026000-7f4d1c17c000 r-xp 00026000 fe:00 326269                     /usr/lib/x86_64-linux-gnu/libc.so.6
7f4d1c1d3000-7f4d1c1d5000 rw-p 001d3000 fe:00 326269                     /usr/lib/x86_64-linux-gnu/libc.so.6
7f4d1c1d5000-7f4d1c1e2000 rw-p 00000000 00:00 0
7fff3a5f2000-7fff3a5f4000 r-xp 00000000 00:00 0                          [vdso]
ffff1c026000-ffff1c17c000 r-xp 00026000 fe:00 32`))
	if want := [][2]uintptr{{0x7f4d1c026000, 0x7f4d1c17c000}}; !reflect.DeepEqual(found, want) {
		t.Errorf("found %x, want %x", found, want)
	}
}
