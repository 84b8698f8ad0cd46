package api

import (
	"strings"
	"testing"

	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
)

// A join token is shown once, and without its secret in the list. The agent that joins with it is listed, revoked and
// removed; tokens that were used or revoked cannot be revoked.
func TestRemoteAgentsOverTheAPI(t *testing.T) {
	t.Parallel()
	c, r := rich(t)
	const agents, tokens = "/api/v2/remote_agent", "/api/v2/agent_token"
	text := c.call("POST", tokens, `{"agent": "router/1", "expire": 600}`, 200).at("data", "token").(string)
	token, err := protocol.ParseToken(text)
	if err != nil || token.URL != "https://agents.example.org" || token.CA == "" {
		t.Fatalf("the token says %+v, %v", token, err)
	}
	c.call("POST", tokens, `{"agent": "router/1", "expire": 9000000}`, 400)
	c.call("POST", tokens, `{"agent": "a\u0007"}`, 400)
	list := c.send("GET", tokens, "").Body.String()
	if !strings.Contains(list, `"state":"waiting"`) || strings.Contains(list, token.Secret) {
		t.Errorf("the list is %s", list)
	}
	request, _, err := ca.Request()
	if err != nil {
		t.Fatal(err)
	}
	join := protocol.JoinRequest{Token: text, Request: request, Program: "test 1"}
	if _, err := r.Agents.Join(t.Context(), join, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	c.call("DELETE", tokens+"/"+token.ID, "", 404)
	if got := c.get(tokens).at("data", 0, "used_from"); got != "192.0.2.1" {
		t.Errorf("the token was used from %v", got)
	}
	one := c.get(agents)
	if one.at("data", 0, "name") != "router/1" || one.at("data", 0, "state") != "joined" ||
		one.at("data", 0, "connected") != false || one.at("data", 0, "certificate_expires") == nil {
		t.Errorf("the agent is %v", one.at("data", 0))
	}
	const at = agents + "/router%2F1"
	c.call("POST", at+"/revoke", "", 200)
	if got := c.get(agents).at("data", 0, "state"); got != "revoked" {
		t.Errorf("after a revocation the agent is %v", got)
	}
	c.call("DELETE", at, "", 200)
	c.call("DELETE", at, "", 404)
	if left := c.get(agents).at("data").([]any); len(left) != 0 {
		t.Errorf("after its removal there is %v", left)
	}
}
