// Package plugins lists the plug-ins of a provisioner: those that are built in, and the programs of a folder.
//
//	built in: pool, aws, openstack │ shell, ansible, puppet ──┐
//	                                                          ├──▶ worker.Plugins, by the names of their types
//	programs of a folder (package program) ───────────────────┘
//
// A built-in plug-in keeps its type: a program that has the same one is reported and left out, because the catalogue's
// definition of the type is built in, too.
package plugins

import (
	"log/slog"
	"maps"
	"slices"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/server/cluster/provisioner/ansible"
	"ordain.dev/ordain/server/cluster/provisioner/aws"
	"ordain.dev/ordain/server/cluster/provisioner/openstack"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/pool"
	"ordain.dev/ordain/server/cluster/provisioner/program"
	"ordain.dev/ordain/server/cluster/provisioner/puppet"
	"ordain.dev/ordain/server/cluster/provisioner/shell"
	"ordain.dev/ordain/server/cluster/provisioner/worker"
)

// BuiltIn returns the plug-ins that every provisioner has.
func BuiltIn() worker.Plugins {
	return worker.Plugins{
		Providers: map[string]plugin.Provider{
			"pool":      pool.Pool{},
			"aws":       &aws.Plugin{Reach: reach},
			"openstack": &openstack.Plugin{Reach: reach},
		},
		Automators: map[string]plugin.Automator{
			"shell":  shell.Shell{},
			"puppet": puppet.Puppet{},
		},
	}
}

// Config says where other plug-ins are, and how they run.
type Config struct {
	// Folder has a folder for each program. Empty: there are none.
	Folder string
	// Tools is where Ansible is installed when it is needed first. Empty: there is no Ansible.
	Tools string
	// Python is the interpreter for it; empty: one is searched for.
	Python string
	// Cell confines programs; nil confines nothing.
	Cell *isolation.Cell
	// Environ are further variables of programs.
	Environ []string
	Logger  *slog.Logger
}

// Load returns the built-in plug-ins and the programs of a folder. Programs that cannot be used are reported in the
// log, so that one of them does not keep the others from their work.
func Load(c Config) (worker.Plugins, error) {
	all := BuiltIn()
	if c.Tools != "" {
		a, err := ansible.New(ansible.Config{Folder: c.Tools, Python: c.Python, Logger: c.Logger})
		if err != nil {
			return all, err
		}
		all.Automators["ansible"] = a
	}
	if c.Folder == "" {
		return all, nil
	}
	if c.Logger == nil {
		return all, fault.New("plugins.Load", fault.Internal, "there is no logger")
	}
	found, problems, err := program.Load(program.Config{
		Folder: c.Folder, Cell: c.Cell, Environ: c.Environ, Logger: c.Logger,
	})
	if err != nil {
		return all, err
	}
	for _, p := range problems {
		c.Logger.Warn("a plug-in cannot be used", "problem", p)
	}
	add(all.Providers, found.Providers, "provider type", c.Logger)
	add(all.Automators, found.Automators, "automator type", c.Logger)
	return all, nil
}

// add adds programs to the plug-ins of a kind.
func add[P any](all, found map[string]P, noun string, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, taken := all[name]; taken {
			log.Warn("a plug-in is left out, because its type is built in", noun, name)
			continue
		}
		all[name] = found[name]
	}
}
