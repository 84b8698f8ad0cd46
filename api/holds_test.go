package api

import (
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// A version that takes away much is not released by the calls that every
// client knows: they are told why and what to do. A person who says who and
// why releases it.
func TestAHeldVersionNeedsAPerson(t *testing.T) {
	c, r := rich(t)
	for _, path := range []string{"/api/v2/desiredstate/9/promote", "/api/v1/version/9"} {
		message := c.call("POST", path, "{}", 409)["message"].(string)
		for _, want := range []string{"version 9 is held", "84 of 204 resources", "ordain version confirm", "/api/v2/desiredstate/9/confirm"} {
			if !strings.Contains(message, want) {
				t.Errorf("%s: no %q in %s", path, want, message)
			}
		}
	}
	hold := c.call("GET", "/api/v2/desiredstate/9/hold", "", 200)
	if dig(t, hold, "data", "removed") != 84.0 || dig(t, hold, "data", "held") != true ||
		len(dig(t, hold, "data", "first").([]any)) != 84 {
		t.Errorf("%v", hold)
	}
	c.call("GET", "/api/v2/desiredstate/7/hold", "", 404)
	c.call("POST", "/api/v2/desiredstate/9/confirm", `{"by":"ida"}`, 400)
	c.call("POST", "/api/v2/desiredstate/9/confirm", `{"by":"","reason":"x"}`, 400)
	done := c.call("POST", "/api/v2/desiredstate/9/confirm", `{"by":"ida","reason":"the east site closes"}`, 200)
	if dig(t, done, "data", "status") != "active" || dig(t, done, "data", "hold", "confirmed", "by") != "ida" {
		t.Errorf("%v", done)
	}
	c.call("POST", "/api/v2/desiredstate/8/confirm", `{"by":"ida","reason":"x"}`, 409)
	if v, err := r.Store.ActiveVersion(t.Context(), r.Production.ID); err != nil || v.Number != 9 {
		t.Errorf("version %v is active, %v", v, err)
	}
}

// What is protected cannot be confirmed away.
func TestProtectionIsStrongerThanAPerson(t *testing.T) {
	c, r := rich(t)
	c.call("POST", "/api/v2/environment_settings/protected_resources", `{"value":"fs::Directory[web*]"}`, 200)
	message := c.call("POST", "/api/v2/desiredstate/9/confirm", `{"by":"ida","reason":"x"}`, 409)["message"].(string)
	v, err := r.Store.Version(t.Context(), r.Production.ID, 9)
	if err != nil || !strings.Contains(message, "held") || v.Status != intent.VersionCandidate {
		t.Error(message, v.Status, err)
	}
}

// Notifications are listed by page and filter, and marked as read and cleared.
func TestNotifications(t *testing.T) {
	c, r := rich(t)
	titles := func(path string) (out []string) {
		for _, n := range dig(t, c.call("GET", path, "", 200), "data").([]any) {
			out = append(out, dig(t, n, "title").(string))
		}
		return out
	}
	for path, want := range map[string][]string{
		"/api/v2/notification": {
			"Version 9 is held", "Dry run of version 7 ready", "Compilation failed",
			"Dry run of " + r.PullHead + " ready", "The forge was not told", "A commit waits for approval",
			"Agent web06 cannot reach its target",
		},
		"/api/v2/notification?sort=created.asc&limit=1": {"Agent web06 cannot reach its target"},
		"/api/v2/notification?filter.read=true":         {"Agent web06 cannot reach its target"},
		"/api/v2/notification?filter.title=HELD":        {"Version 9 is held"},
		"/api/v2/notification?filter.message=errors":    {"Compilation failed"},
		"/api/v2/notification?filter.severity=warning":  {"Version 9 is held", "The forge was not told"},
		"/api/v2/notification?filter.cleared=true":      nil,
	} {
		if got := titles(path); !slices.Equal(got, want) {
			t.Errorf("%s: %q", path, got)
		}
	}
	c.call("GET", "/api/v2/notification?sort=title.asc", "", 400)
	c.call("GET", "/api/v2/notification?filter.uri=x", "", 400)
	one := "/api/v2/notification/" + r.Notices[0].ID.String()
	if got := c.call("PATCH", one, `{"read":true}`, 200); dig(t, got, "data", "read") != true ||
		dig(t, got, "data", "cleared") != false {
		t.Errorf("%v", got)
	}
	if got := c.call("PATCH", one, `{"cleared":true}`, 200); dig(t, got, "data", "read") != true ||
		dig(t, got, "data", "cleared") != true {
		t.Errorf("%v", got)
	}
	c.call("PATCH", one, `{}`, 400)
	c.call("PATCH", one, `{"read":"perhaps"}`, 400)
	c.call("GET", "/api/v2/notification/a0000000-0000-4000-8000-000000000099", "", 404)
	c.call("PATCH", "/api/v2/notification/a0000000-0000-4000-8000-000000000099", `{"read":true}`, 404)
	if got := titles("/api/v2/notification?filter.cleared=false"); len(got) != 6 {
		t.Errorf("%q", got)
	}
}
