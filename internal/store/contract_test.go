package store_test

import (
	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/store"
)

// The store is what control asks for.
var _ control.Store = (*store.Store)(nil)
