package console

import (
	"bytes"
	"encoding/json"
	"net/http"

	"ordain.dev/ordain/internal/intent"
)

// intentHistory shows how the intent of a resource changed, newest first, each with what changed since the one before.
func (c *console) intentHistory(r *http.Request, e intent.Environment, past []intent.ResourceHistory) (history, error) {
	var out history
	var lists []changes
	var attributes []map[string]intent.AttributeChange
	for i, h := range past {
		row := historyRow{
			Date: h.Date, Version: h.Version, VersionURL: versionURL(e.ID, h.Version),
			Attributes: attributesOf(h.Attributes),
		}
		changed := map[string]intent.AttributeChange{}
		if i+1 < len(past) {
			changed = changedAttributes(past[i+1].Attributes, h.Attributes)
		}
		row.Changes = changesOf("Before", "Since then", changed)
		lists, attributes = append(lists, row.Changes), append(attributes, changed)
		out.Rows = append(out.Rows, row)
	}
	return out, c.addLines(r, e, lists, attributes)
}

// changedAttributes returns the attributes that differ between two JSON objects.
func changedAttributes(before, after json.RawMessage) map[string]intent.AttributeChange {
	var was, now map[string]json.RawMessage
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &now) != nil {
		return nil
	}
	out := map[string]intent.AttributeChange{}
	add := func(name string) {
		if !bytes.Equal(was[name], now[name]) {
			out[name] = intent.AttributeChange{Current: anyValue(was[name]), Desired: anyValue(now[name])}
		}
	}
	for name := range was {
		add(name)
	}
	for name := range now {
		add(name)
	}
	return out
}

func anyValue(raw json.RawMessage) (v any) {
	if json.Unmarshal(raw, &v) != nil {
		return nil // it is not in this intent
	}
	return v
}

// addAttemptLines adds the lines that differ to what attempts changed.
func (c *console) addAttemptLines(
	r *http.Request, e intent.Environment, rows []attempt, actions []intent.Action,
) error {
	var lists []changes
	var attributes []map[string]intent.AttributeChange
	for i, a := range actions {
		lists, attributes = append(lists, rows[i].Changes), append(attributes, a.Changes)
	}
	return c.addLines(r, e, lists, attributes)
}

// addDriftLines adds to records of drift the lines that differ, from what was found to the intent.
func (c *console) addDriftLines(r *http.Request, e intent.Environment, rows []driftRow, found []intent.Drift) error {
	var attributes []map[string]intent.AttributeChange
	for _, d := range found {
		attributes = append(attributes, map[string]intent.AttributeChange{
			d.Attribute: {Current: anyValue(d.Found), Desired: anyValue(d.Desired)},
		})
	}
	lines, err := c.control.LineDiffs(r.Context(), e, attributes)
	for i := range lines {
		rows[i].Lines = lines[i][rows[i].Attribute]
	}
	return err
}
