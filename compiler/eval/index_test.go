package eval

import "testing"

// Keys whose sums are equal keep their instances apart, and a key that nobody
// has finds none of them.
func TestKeysWithEqualSums(t *testing.T) {
	const sum = 7
	var known instancesByKey
	a, b, c := &Instance{id: 1}, &Instance{id: 2}, &Instance{id: 3}
	keys := map[*Instance]string{a: "a", b: "b", c: "c"}
	get := func(key string) *Instance {
		return known.get(sum, []byte(key), func(i *Instance) bool { return keys[i] == key })
	}
	for _, i := range []*Instance{a, b, c} {
		if had := get(keys[i]); had != nil {
			t.Errorf("%q is taken by %d before it is put", keys[i], had.id)
		}
		known.put(sum, []byte(keys[i]), i)
	}
	for i, key := range keys {
		if got := get(key); got != i {
			t.Errorf("%q gives %v, not instance %d", key, got, i.id)
		}
	}
	if got := get("d"); got != nil {
		t.Errorf("a key that nobody has gives instance %d", got.id)
	}
}
