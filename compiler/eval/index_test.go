package eval

import (
	"strconv"
	"testing"
)

// Keys whose sums are equal keep their instances apart, also when the table
// grows, and a key that nobody has finds none of them.
func TestKeysWithEqualSums(t *testing.T) {
	var known instancesByKey
	var keys []string
	get := func(sum uint32, key string) uint32 {
		return known.get(sum, func(id uint32) bool { return keys[id-1] == key })
	}
	sum := func(n int) uint32 { return uint32(n % 7) }
	for n := range 100 {
		key := "key " + strconv.Itoa(n)
		if had := get(sum(n), key); had != 0 {
			t.Errorf("%q is taken by %d before it is put", key, had)
		}
		keys = append(keys, key)
		known.put(sum(n), uint32(len(keys)))
	}
	for n, key := range keys {
		if got := get(sum(n), key); got != uint32(n+1) {
			t.Errorf("%q gives instance %d, not %d", key, got, n+1)
		}
	}
	for n := range 8 {
		if got := get(uint32(n), "another"); got != 0 {
			t.Errorf("a key that nobody has gives instance %d", got)
		}
	}
}
