package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// Ada lets a provisioner join with a token, takes another token back, and turns the provisioner away again.
func TestProvisionersElsewhere(t *testing.T) {
	t.Parallel()
	s := openClusters(t)
	in := func(want int, args ...string) string {
		t.Helper()
		return s.run(want, append([]string{"provisioner"}, args...)...)
	}
	if token := in(0, "token", "create", "shop", "rack-7", "--expire", "30m"); strings.Contains(token, " ") ||
		len(token) < 40 {
		t.Errorf("the token is %q", token)
	}
	var tokens []struct {
		ID    uuid.UUID `json:"id"`
		State string    `json:"state"`
	}
	if err := json.Unmarshal([]byte(in(0, "token", "list", "shop", "-o", "json")), &tokens); err != nil ||
		len(tokens) != 1 {
		t.Fatalf("%v, %v", tokens, err)
	}
	e, err := s.Store.Environment(t.Context(), s.env)
	if err != nil {
		t.Fatal(err)
	}
	joined := intent.Provisioner{
		ID:      uuid.New(),
		Project: e.ProjectID,
		Name:    "rack-7",
		Serial:  "1",
		Expires: time.Now().Add(time.Hour),
	}
	if _, err := s.Store.JoinProvisioner(t.Context(), tokens[0].ID, joined, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.has(in(0, "list", "shop"), "rack-7")
	s.has(in(0, "list"), "rack-7")
	s.has(in(0, "token", "list", "shop"), "used")

	in(0, "token", "create", "shop", "rack-8")
	s.has(in(1, "token", "revoke", "shop", "rack-7"), "no token rack-7 that waits")
	in(0, "token", "revoke", "shop", "rack-8")
	s.has(in(0, "token", "list", "shop"), "revoked")

	in(0, "revoke", "shop", "rack-7")
	s.has(in(1, "revoke", "shop", "rack-7"), "was revoked at")
	s.has(in(1, "revoke", "shop", "rack-9"), "no provisioner rack-9 has joined")
	s.has(in(1, "list", "market"), "there is no project called market")
}
