package api

import "testing"

// Webhooks are listed, filtered, shown with what they told, and sent again;
// one that was refused is not.
func TestDeliveries(t *testing.T) {
	c, r := rich(t)
	for filter, want := range map[string]float64{"": 4, "filter.state=started": 1, "filter.state=refused": 1, "filter.event=pull": 1, "filter.ref=main": 1, "filter.forge=gitlab": 0} {
		if got := dig(t, c.call("GET", "/api/v2/deliveries?"+filter, "", 200), "metadata", "total"); got != want {
			t.Errorf("%q: %v, want %v", filter, got, want)
		}
	}
	c.call("GET", "/api/v2/deliveries?filter.colour=red", "", 400)
	c.call("GET", "/api/v2/deliveries/nonsense", "", 400)
	c.call("GET", "/api/v2/deliveries/00000000-0000-4000-8000-000000000000", "", 404)
	one := c.call("GET", "/api/v2/deliveries/"+r.Delivery.String(), "", 200)
	if dig(t, one, "data", "state") != "started" || dig(t, one, "data", "compile") != r.Good.String() ||
		dig(t, one, "data", "told", "kind") != "push" {
		t.Errorf("%v", one)
	}
	again := c.call("POST", "/api/v2/deliveries/"+r.Delivery.String()+"/redeliver", "{}", 200)
	if dig(t, again, "data", "replay_of") != r.Delivery.String() || dig(t, again, "data", "state") != "waiting" {
		t.Errorf("%v", again)
	}
	refused := dig(t, c.call("GET", "/api/v2/deliveries?filter.state=refused", "", 200), "data", 0, "id").(string)
	c.call("POST", "/api/v2/deliveries/"+refused+"/redeliver", "{}", 409)
	c.tid = r.Staging.ID.String()
	c.call("GET", "/api/v2/deliveries/"+r.Delivery.String(), "", 404)
}
