package storetest_test

import (
	"testing"

	"ordain.dev/ordain/server/store/storetest"
)

// Two tests at the same time each have a database of their own.
func TestEachTestHasItsOwnDatabase(t *testing.T) {
	first, second := storetest.URL(t), storetest.URL(t)
	if first == second {
		t.Fatal("two tests share a database")
	}
	if err := storetest.Open(t).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}
