// Package conformancetest runs the checks of package conformance as tests.
//
//	conformancetest.Provider(t, func(t *testing.T) conformance.Subject {
//		… a world without machines, and a plug-in that works in it
//	})
package conformancetest

import (
	"testing"

	"ordain.dev/ordain/server/cluster/provisioner/conformance"
	"ordain.dev/ordain/server/cluster/provisioner/program"
)

// Provider tests a provider plug-in. make makes a world without machines.
func Provider(t *testing.T, make func(t *testing.T) conformance.Subject) {
	run(t, conformance.Providers(), make)
}

// Program tests how a plug-in that is a program of its own treats what it does not understand.
func Program(t *testing.T, p *program.Program) {
	run(t, conformance.Programs(), func(*testing.T) conformance.Subject { return conformance.Subject{Program: p} })
}

func run(t *testing.T, checks []conformance.Check, make func(t *testing.T) conformance.Subject) {
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context(), make(t)); err != nil {
				t.Error(err)
			}
		})
	}
}
