package intent

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// The text of an id is parsed to the same id, although values may contain every
// character of the syntax.
func TestResourceIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := ResourceID{
			Type:      rapid.StringMatching(`[a-z]{1,5}(::[A-Za-z]{1,5}){1,2}`).Draw(t, "type"),
			Agent:     rapid.StringMatching(`[a-z0-9.:/ -]{1,8}`).Draw(t, "agent"),
			Attribute: rapid.StringMatching(`[a-z_]{1,5}`).Draw(t, "attribute"),
			Value:     rapid.StringMatching(`[a-z,=\[\]/ v0-9]{0,12}`).Draw(t, "value"),
		}
		back, err := ParseResourceID(id.String())
		if err != nil || back != id {
			t.Fatalf("%q reads back as %+v, %v", id, back, err)
		}
		version := rapid.IntRange(0, 1<<30).Draw(t, "version")
		back, v, err := ParseResourceVersionID(id.AtVersion(version))
		if err != nil || back != id || v != version {
			t.Fatalf("%q reads back as %+v at %d, %v", id.AtVersion(version), back, v, err)
		}
	})
}

func TestInvalidResourceIDs(t *testing.T) {
	for _, s := range []string{"", "File", "fs::File", "fs::File[]", "fs::File[a]", "fs::File[a,b]", "fs::File[,b=c]",
		"fs::File[a,=c]", "[a,b=c]", "fs::File[a,b=c", "fs::File[a,b=c],v=x"} {
		if _, _, err := ParseResourceVersionID(s); !errors.Is(err, ErrResourceID) {
			t.Errorf("%q gives %v", s, err)
		}
	}
}

func FuzzParseResourceVersionID(f *testing.F) {
	f.Add("fs::File[host,path=/etc/motd],v=3")
	f.Add("a::B[c,d=],v=],v=1")
	f.Fuzz(func(t *testing.T, s string) {
		id, v, err := ParseResourceVersionID(s)
		if err != nil {
			return
		}
		back, w, err := ParseResourceVersionID(id.AtVersion(v))
		if err != nil || back != id || w != v {
			t.Fatalf("%q: %+v,%d reads back as %+v,%d, %v", s, id, v, back, w, err)
		}
	})
}

// Blueprints with the same content in another order are equal. The sources are part of
// the executor's hash, but not of its virtual environment's.
func TestBlueprintHashes(t *testing.T) {
	a := Blueprint{
		Requirements: []string{"x", "y"},
		Sources:      []SourceFile{{Path: "a.py", Hash: "1"}, {Path: "b.py", Hash: "2"}},
	}
	b := Blueprint{
		Requirements: []string{"y", "x"},
		Sources:      []SourceFile{{Path: "b.py", Hash: "2"}, {Path: "a.py", Hash: "1"}},
	}
	if a.Hash() != b.Hash() || a.VenvHash() != b.VenvHash() {
		t.Error("the order of parts changes a hash")
	}
	if a.Requirements[0] != "x" || b.Sources[0].Path != "b.py" {
		t.Error("hashing changed the blueprint")
	}
	b.Sources[0].Hash = "3"
	if a.Hash() == b.Hash() || a.VenvHash() != b.VenvHash() {
		t.Error("a changed source must change the executor and keep the virtual environment")
	}
	b.Constraints = []string{"z<2"}
	if a.VenvHash() == b.VenvHash() {
		t.Error("a constraint must change the virtual environment")
	}
}

// Settings are sent as JSON or as text. Both are converted, and invalid values rejected.
func TestSettingsConvert(t *testing.T) {
	for _, c := range []struct {
		name string
		in   string
		want any
	}{
		{"auto_deploy", `"true"`, true}, {"auto_deploy", `false`, false}, {"auto_deploy", `3`, nil},
		{"available_versions_to_keep", `"42"`, 42}, {"available_versions_to_keep", `1.5`, nil},
		{"available_versions_to_keep", `-1`, nil},
		{"recompile_backoff", `0.5`, 0.5}, {"recompile_backoff", `"x"`, nil},
		{"autostart_agent_deploy_interval", `60`, "60"}, {"autostart_agent_deploy_interval", `"*/5 * * * *"`,
			"*/5 * * * *"},
		{"autostart_agent_deploy_interval", `"every tuesday"`, nil}, {"autostart_agent_deploy_interval", `-5`, nil},
	} {
		var in any
		if err := json.Unmarshal([]byte(c.in), &in); err != nil {
			t.Fatal(err)
		}
		def, _ := SettingNamed(c.name)
		got, err := def.Convert(in)
		if (err != nil) != (c.want == nil) || err == nil && got != c.want {
			t.Errorf("%s=%s gives %v, %v; want %v", c.name, c.in, got, err, c.want)
		}
	}
	e := Environment{Settings: map[string]any{"available_versions_to_keep": 3.0}}
	if e.Int("available_versions_to_keep") != 3 || e.Int("resource_action_logs_retention") != 7 ||
		!e.Bool("auto_deploy") {
		t.Error("values and defaults of an environment are wrong")
	}
}

// The status of the older API is derived from the state; the first rule that matches
// decides.
func TestStatusFromState(t *testing.T) {
	for _, c := range []struct {
		state ResourceState
		want  Status
	}{
		{ResourceState{Orphaned: 2, IsDeploying: true}, StatusOrphaned},
		{ResourceState{IsDeploying: true, Compliance: Undefined}, StatusDeploying},
		{ResourceState{Compliance: Undefined, Blocked: IsBlocked}, StatusUndefined},
		{ResourceState{Compliance: HasUpdate, Blocked: IsBlocked}, StatusSkippedForUndefined},
		{ResourceState{Compliance: HasUpdate, LastRun: RunNew}, StatusAvailable},
		{ResourceState{Compliance: HasUpdate, LastRun: RunFailed}, StatusAvailable},
		{ResourceState{Compliance: HasUpdate, LastRun: RunSuccessful}, StatusAvailable},
		{ResourceState{Compliance: NonCompliant, LastRun: RunSkipped}, StatusSkipped},
		{ResourceState{Compliance: NonCompliant, LastRun: RunFailed}, StatusFailed},
		{ResourceState{Compliance: NonCompliant, LastRun: RunSuccessful}, StatusNonCompliant},
		{ResourceState{Compliance: Compliant, LastRun: RunSuccessful}, StatusDeployed},
	} {
		if got := c.state.Status(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.state, got, c.want)
		}
	}
}
