package client

import (
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// What the server tells in parts stands on lines of its own, once; and it stays a fault of its kind.
func TestRefusalsHaveALineForEachPart(t *testing.T) {
	for _, one := range []struct{ answer, want string }{
		{`{"message": "Invalid request: there is no layout: a needs b\nb has no room", "reasons": ["a needs b",
			"b has no room"], "hint": "Ask for more machines"}`,
			"Invalid request: there is no layout\n  a needs b\n  b has no room\nAsk for more machines"},
		{`{"message": "Invalid request: p needs these fields: token", "missingFields": ["token"]}`,
			"Invalid request: p needs these fields: token\n  missing: token"},
		{`{"message": "Invalid request: it is not right: size: is negative; no name", "problems": [
			{"field": "size", "text": "is negative"}, {"field": "", "text": "no name"}]}`,
			"Invalid request: it is not right\n  size: is negative\n  no name"},
		{`{"message": "Invalid request: no"}`, "Invalid request: no"},
		{`<html>`, "the server answered 400"},
	} {
		err := refusal(400, []byte(one.answer))
		if err.Error() != one.want || !fault.Is(err, fault.Invalid) {
			t.Errorf("%s is\n%s", one.answer, err)
		}
	}
	if err := refusal(409, []byte(`{"message": "no", "reasons": ["why"]}`)); !fault.Is(err, fault.Conflict) {
		t.Errorf("a conflict is %v", err)
	}
}
