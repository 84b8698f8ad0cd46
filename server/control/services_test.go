package control_test

import (
	"testing"

	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
)

// The services behind the verbs start and stop in every order.
func TestServices(t *testing.T) {
	t.Parallel()
	t.Run("keepers", func(t *testing.T) {
		servicetest.Test(t, func(t *testing.T) service.Service {
			s := newStage(t)
			s.Stop()
			s.build()
			return s.keepers
		})
	})
	t.Run("forge", func(t *testing.T) {
		servicetest.Test(t, func(t *testing.T) service.Service {
			s := newStage(t)
			s.Stop()
			s.build()
			return s.forge
		})
	})
}
