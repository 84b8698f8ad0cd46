package console

import (
	"bytes"
	"encoding/json"
	"net/http"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
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
	return out, addLines(r, e, c.control.LineDiffs, lists, attributes)
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
	if err := addLines(r, e, c.control.FoundDiffs, lists, attributes); err != nil {
		return err
	}
	left := shownText
	for i := range rows {
		for _, row := range rows[i].Changes.Rows {
			left = spend(row.Lines, left)
		}
	}
	return nil
}

// addDriftLines adds to records of drift the lines that differ, from what was found to the intent.
func (c *console) addDriftLines(r *http.Request, e intent.Environment, rows []driftRow, found []intent.Drift) error {
	var attributes []map[string]intent.AttributeChange
	for _, d := range found {
		attributes = append(attributes, map[string]intent.AttributeChange{
			d.Attribute: {Current: anyValue(d.Found), Desired: anyValue(d.Desired)},
		})
	}
	lines, err := c.control.FoundDiffs(r.Context(), e, attributes)
	left := shownText
	for i := range lines {
		rows[i].Lines = lines[i][rows[i].Attribute]
		left = spend(rows[i].Lines, left)
	}
	return err
}

// shownSize returns how many bytes a page has of a difference.
func shownSize(d *linediff.Diff) int {
	n := len(d.Note)
	for _, line := range d.Lines {
		n += len(line.Text()) + 2
	}
	return n
}

// spend takes what a page has of a difference from what is left of its bound, and returns what is left then. Once there
// is nothing, a content that is shown as a whole is left out.
func spend(d *linediff.Diff, left int) int {
	if d == nil {
		return left
	}
	if size := shownSize(d); size < left || d.Note == "" {
		return left - size
	}
	d.Note, d.Lines, d.Hidden = d.Note+", and left out here, since the page is long", nil, 0
	return left
}
