package store_test

import (
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// The store is what control asks for.
var _ control.Store = (*store.Store)(nil)
