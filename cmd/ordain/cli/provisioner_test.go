package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cloudScript is a plug-in for providers whose machines are the files of a folder.
const cloudScript = `#!/bin/sh
task=$(cat)
world=$(printf '%s' "$task" | sed -n 's/.*"world":"\([^"]*\)".*/\1/p')
[ -n "$world" ] || { echo '{"status":"refused","problem":"no world"}' >&3; exit 0; }
case "$ORDAIN_ACTION" in
create) : >"$world/TAG"; echo '{"status":"done","facts":{"providerid":"x"}}' >&3 ;;
confirm) [ -e "$world/$ORDAIN_TAG" ] || { echo '{"status":"failed","problem":"none"}' >&3; exit 0; }
	echo '{"status":"done","addresses":{"access_v4":"192.0.2.1","bind_v4":"192.0.2.1"}}' >&3 ;;
delete) rm -f "$world/TAG"; echo '{"status":"done"}' >&3 ;;
*) echo '{"status":"refused","problem":"unknown action"}' >&3 ;;
esac
`

// An author checks a plug-in: at first without an account, then with one; and then a plug-in that forgets the tag.
func TestProvisionerConformance(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tag := range map[string]string{"good": "$ORDAIN_TAG", "bad": "$(date +%N)-$$"} {
		write(name+"/plugin.json", `{"name":"cloud","protocol":1,"program":"main.sh","providertypes":["cloud"]}`)
		write(name+"/main.sh", strings.ReplaceAll(cloudScript, "TAG", tag))
	}
	world := filepath.Dir(write("world/there-before", ""))
	fields := write("fields.json", `{"world":"`+world+`"}`)
	check := func(wanted int, texts []string, args ...string) {
		t.Helper()
		status, out, errs := ordain("", append([]string{"provisioner", "conformance"}, args...)...)
		if status != wanted {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
		for _, text := range texts {
			if !strings.Contains(out+errs, text) {
				t.Errorf("%q: nothing of %q in\n%s%s", args, text, out, errs)
			}
		}
	}
	check(0, []string{"5 of 5 checks passed", "No machine was made"}, filepath.Join(dir, "good"))
	account := []string{"--fields", fields, "--machines", "ls " + world}
	quick := append(account, "--only", "one life,twice,other tags,nothing")
	check(0, []string{"passed", "checks passed."}, append(quick, filepath.Join(dir, "good"))...)
	if left, _ := os.ReadDir(world); len(left) != 1 {
		t.Errorf("the machines %v are left", left)
	}
	check(1, []string{"FAILED", "creating twice with one tag gives one machine", "the machines have the tags"},
		append(quick, filepath.Join(dir, "bad"))...)
	check(2, []string{"no check has such a name"}, filepath.Join(dir, "good"), "--only", "nowhere to be found")
	check(2, []string{"TYPE/NAME=PATH"}, filepath.Join(dir, "good"), "--file", "key")
	check(1, []string{"plugin.json"}, dir)
}

// A provisioner whose connection is none ends with a hint for the person who tries it.
func TestProvisionerWithoutServer(t *testing.T) {
	status, _, errs := ordain("", "provisioner", "--desk-fd", "987654", "--state-dir", t.TempDir())
	if status != 1 || !strings.Contains(errs, "the descriptor is no connection to a server") {
		t.Errorf("%d: %s", status, errs)
	}
	if status, _, errs := ordain("", "provisioner", "--desk-fd", "987654"); status != 2 {
		t.Errorf("%d: %s", status, errs)
	}
	if status, out, _ := ordain("", "provisioner"); status != 0 || !strings.Contains(out, "conformance") {
		t.Errorf("%d: %s", status, out)
	}
}
