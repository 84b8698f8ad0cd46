package parity

import "testing"

// of is a document with three equal children, which a variable lists in the order of these ids.
func of(t *testing.T, ids [3]string, last string) *Document {
	t.Helper()
	child := func(id, name string) string {
		return `{"id":"` + id + `","type":"m::Child","attributes":{"name":"` + name + `"},"relations":{}}`
	}
	d, err := Normalise(
		[]byte(`{"success":true,"instances":[` + child("1", "x") + "," + child("2", "x") + "," + child("3", last) +
			`],"variables":{"l":[{"$ref":"` + ids[0] + `"},{"$ref":"` + ids[1] + `"},{"$ref":"` + ids[2] +
			`"}]},"output":[],"warnings":[],"error":null}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Instances that are equal in everything may be in a list in any order, others may not.
func TestEqualInstancesHaveNoOrder(t *testing.T) {
	if v, why := Compare(of(t, [3]string{"3", "2", "1"}, "x"), of(t, [3]string{"2", "3", "1"}, "x")); v != Same {
		t.Errorf("%s: %s", v, why)
	}
	if v, _ := Compare(of(t, [3]string{"3", "2", "1"}, "y"), of(t, [3]string{"2", "3", "1"}, "y")); v != Model {
		t.Errorf("another order of different instances is %q", v)
	}
}
