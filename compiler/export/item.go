package export

import (
	"encoding/json"
	"slices"

	"ordain.dev/ordain/internal/intent"
)

// arrange sorts the names of all fields and finds the place of each.
func (k *kind) arrange() {
	k.names = []string{"mutators", "references"}
	for _, f := range k.Fields {
		k.names = append(k.names, f[0])
	}
	slices.Sort(k.names)
	k.names = slices.Compact(k.names)
	for _, f := range k.Fields {
		place, _ := slices.BinarySearch(k.names, f[0])
		k.places = append(k.places, place)
	}
}

// visit says how far the search for cycles is with a resource.
type visit uint8

const (
	entered visit = iota + 1
	left
)

var emptyList = json.RawMessage("[]")

// set sets the value of a field. It reports false when there is no such field.
func (it *item) set(name string, raw json.RawMessage) bool {
	place, have := slices.BinarySearch(it.kind.names, name)
	if have {
		it.values[place] = raw
	}
	return have
}

// get returns the value of a field; nil when it has none.
func (it *item) get(name string) json.RawMessage {
	if place, have := slices.BinarySearch(it.kind.names, name); have {
		return it.values[place]
	}
	return nil
}

// title is the id of the resource or, before it has one, its type.
func (it *item) title() string {
	if it.id.IsZero() {
		return "a " + it.kind.Name
	}
	return it.id.String()
}

// fields are the fields that have a value, by name.
func (it *item) fields() (all map[string]json.RawMessage, err error) {
	if it.values == nil {
		return all, json.Unmarshal(it.attributes, &all)
	}
	all = make(map[string]json.RawMessage, len(it.values))
	for n, raw := range it.values {
		if raw != nil {
			all[it.kind.names[n]] = raw
		}
	}
	return all, nil
}

// seal writes the attributes once all fields have their values, and drops those.
func (it *item) seal() {
	if it.values == nil {
		return
	}
	it.attributes = it.appendObject(nil)
	it.sendEvent, it.receiveEvents = isTrue(it.get("send_event")), isTrue(it.get("receive_events"))
	it.reportOnly, it.purged = isTrue(it.get("report_only")), isTrue(it.get("purged"))
	it.values = nil
}

// change sets fields of a sealed item to other values.
func (it *item) change(fields map[string]json.RawMessage) error {
	all, err := it.fields()
	if err != nil {
		return err
	}
	it.values = make([]json.RawMessage, len(it.kind.names))
	for name, raw := range all {
		it.set(name, raw)
	}
	for name, raw := range fields {
		if raw, err = canonical(raw); err != nil {
			return err
		}
		it.set(name, raw)
		it.undefined = slices.DeleteFunc(it.undefined, func(u string) bool { return u == name })
	}
	it.seal()
	return nil
}

// replace makes the item what its Python object wrote.
func (it *item) replace(by writtenResource) (err error) {
	if it.id, err = idOf(by.id); err != nil {
		return err
	}
	if it.attributes, err = canonical(by.attributes); err != nil {
		return err
	}
	var flags struct {
		SendEvent     any `json:"send_event"`
		ReceiveEvents any `json:"receive_events"`
		ReportOnly    any `json:"report_only"`
		Purged        any `json:"purged"`
	}
	if err := json.Unmarshal(it.attributes, &flags); err != nil {
		return err
	}
	it.sendEvent, it.receiveEvents = flags.SendEvent == true, flags.ReceiveEvents == true
	it.reportOnly, it.purged = flags.ReportOnly == true, flags.Purged == true
	it.undefined = append(it.undefined, by.undefined...)
	it.needs = []intent.ResourceID{}
	for _, parts := range by.requires {
		id, err := idOf(parts)
		if err != nil {
			return err
		}
		it.needs = append(it.needs, id)
	}
	slices.SortFunc(it.needs, compareID)
	it.needs = slices.Compact(it.needs)
	return nil
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }
