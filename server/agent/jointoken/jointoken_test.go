package jointoken

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestASecretIsRecognizedByItsHash(t *testing.T) {
	secret, hash, err := New()
	if err != nil || !Same(Hash(secret), hash) || Same(Hash(secret+"x"), hash) || strings.Contains(hash, secret) {
		t.Errorf("%q %q %v", secret, hash, err)
	}
	if other, _, _ := New(); other == secret {
		t.Error("two secrets are equal")
	}
}

func TestLimits(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		0: time.Hour, time.Minute: time.Minute, MaxLifetime: MaxLifetime, time.Second: 0, MaxLifetime + 1: 0, -1: 0,
	} {
		if got, err := Lifetime(asked); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %s %v", asked, got, err)
		}
	}
	for name, good := range map[string]bool{
		"rack 1": true, "": false, " rack": false, "ra\x00ck": false, "ra\xffck": false, "abcdefghij": true,
		"abcdefghijk": false,
	} {
		if err := CheckName("agent", name, 10); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A token that is tried again and again is in the audit trail once per minute; others are not affected.
func TestNoticesAreRare(t *testing.T) {
	var n Notices
	one, two, at := uuid.New(), uuid.New(), time.Now()
	if !n.Due(one, at) || n.Due(one, at.Add(59*time.Second)) || !n.Due(two, at) || !n.Due(one, at.Add(time.Minute)) {
		t.Error("the notices are not one per minute and token")
	}
}
