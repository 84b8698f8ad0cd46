package console

import (
	"net/http"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// holdView says why a version waits for a person, or who confirmed it.
type holdView struct {
	URL         string // of the version
	Held        bool
	Confirmable bool
	Text        string
	Since       time.Time
	Number      int
	Types       []removedType
	Protected   []removedRow
	Rows        []removedRow
	More        int // how many Rows leaves out
	By, Reason  string
	At          time.Time
	CompareURL  string
}

type removedType struct {
	Type string
	N    int
}

type removedRow struct {
	URL, ID string
	State   state
}

// holdOf returns the hold of a version, nil when it was never held.
func holdOf(v intent.Version) *holdView {
	h := v.Hold
	if h == nil {
		return nil
	}
	out := &holdView{
		URL: versionURL(v.Environment, v.Number), Held: v.Held(), Confirmable: h.Confirmable(), Text: h.Text,
		Since: h.Since, Number: v.Number, Protected: removedRows(v, h.Protected), Rows: removedRows(v, h.First),
		More: h.Count() - len(h.First),
	}
	if h.Before > 0 {
		out.CompareURL = compareURL(v.Environment, h.Before, v.Number)
	}
	for _, t := range h.Types {
		out.Types = append(out.Types, removedType{t.Type, t.Gone + t.Purged})
	}
	if c := v.Confirmed; c != nil {
		out.By, out.Reason, out.At = c.By, c.Reason, c.At
	}
	return out
}

func removedRows(v intent.Version, list []intent.Removed) (out []removedRow) {
	for _, one := range list {
		row := removedRow{URL: resourceURL(v.Environment, one.ID), ID: one.ID.String(), State: unmanaged}
		if one.Purged {
			row.State = state{"failed", "purged"}
		}
		out = append(out, row)
	}
	return out
}

// doConfirm releases a version that is held.
func (c *console) doConfirm(r *http.Request, e intent.Environment) (string, error) {
	n, err := versionNumber(r)
	if err != nil {
		return "", err
	}
	err = c.control.Confirm(r.Context(), e.ID, n, r.PostFormValue("by"), r.PostFormValue("reason"))
	return versionURL(e.ID, n) + "?done=confirmed", err
}
