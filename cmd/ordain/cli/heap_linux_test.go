package cli

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// What a compile allocates lies where the kernel was asked for large pages.
func TestTheHeapGrowsIntoLargePages(t *testing.T) {
	if !mayAsk() {
		t.Skip("this system does not give large pages to who asks")
	}
	askForLarge()
	model := make([]byte, firstCollection/2) // more than other tests leave free
	if flags := flagsAt(t, uintptr(unsafe.Pointer(unsafe.SliceData(model)))+uintptr(len(model))/2); !slices.Contains(
		flags,
		"hg",
	) {
		t.Errorf("the kernel was not asked for large pages there: %v", flags)
	}
}

// Pieces of twice the size count twice; smaller ones are no large pages.
func TestFreeLargePagesAreCounted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "buddyinfo")
	text := "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n" +
		"Node 0, zone   Normal     16     26    768    388    133    481    177     34      2      5      0 \n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if free := freeLarge(file); free != 1+2*3+5 {
		t.Errorf("%d large pages are free, not 12", free)
	}
	if free := freeLarge(file + "-gone"); free != 0 {
		t.Errorf("%d large pages are free where nobody tells", free)
	}
}

// A virtual machine whose host takes free large pages back says from which size
// on; one whose host does not, and a machine of its own, do not.
func TestWhetherTheHostTakesFreePagesBack(t *testing.T) {
	for text, want := range map[string]bool{"9\n": true, "10\n": true, "-1\n": false, "4294967295\n": false, "": false} {
		file := filepath.Join(t.TempDir(), "page_reporting_order")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := givenBack(file); got != want {
			t.Errorf("%q: given back: %t", text, got)
		}
	}
	if givenBack(filepath.Join(t.TempDir(), "gone")) {
		t.Error("given back where nobody tells")
	}
}

// flagsAt gives the flags of the mapping that an address lies in.
func flagsAt(t *testing.T, address uintptr) []string {
	t.Helper()
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for lines := bufio.NewScanner(bytes.NewReader(mappings)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if !strings.HasSuffix(fields[0], ":") {
			low, high, _ := strings.Cut(fields[0], "-")
			from, _ := strconv.ParseUint(low, 16, 64)
			to, _ := strconv.ParseUint(high, 16, 64)
			inside = from <= uint64(address) && uint64(address) < to
		} else if inside && fields[0] == "VmFlags:" {
			return fields[1:]
		}
	}
	t.Fatalf("no mapping has %x", address)
	return nil
}
