// Package conformance holds agents to docs/agent-protocol.md. It plays the agent
// server for a program, and checks what the program does:
//
//	Run ──starts──▶ PROGRAM ARGS…      with ORDAIN_JOIN_TOKEN and ORDAIN_AGENT_DIR
//	 │ stage: join, subscribe   ◀═══════╝
//	 └─▶ checks, one after another: join, ping, content, commands, cuts, kills, certificates …
//
// A check that fails does not end the suite: the next one begins with a new connection.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Config says which agent is checked.
type Config struct {
	// Program is the command of the agent. {dir} in an argument stands for the folder in which it may keep files, and
	// {work} for the one in which the suite's handler writes, for an agent that confines handlers. It gets the folder
	// also as ORDAIN_AGENT_DIR, and the join token as ORDAIN_JOIN_TOKEN; when it has joined already, it has to connect
	// with what it kept.
	Program []string
	// Only are the names of the checks to run; empty: all.
	Only []string
	// Output gets what the agent prints; nil: nothing.
	Output io.Writer
	// Report is called after each check; may be nil.
	Report func(Result)
	// Dir is where the agent's folder is made; empty: in the folder for temporary files.
	Dir string
	// Patience is how long the agent may take for a step; 0: 30 seconds.
	Patience time.Duration
}

// Result is how a check ended.
type Result struct {
	Name   string
	About  string // what the protocol asks for
	Failed string // why it failed; empty: it passed
	Took   time.Duration
}

// Checks lists the names of all checks in order, with what they are about.
func Checks() (out []Result) {
	for _, c := range checks {
		out = append(out, Result{Name: c.name, About: c.about})
	}
	return out
}

// Run runs the checks. Its error is about the suite itself, such as a program that does not exist.
func Run(ctx context.Context, cfg Config) (results []Result, err error) {
	if len(cfg.Program) == 0 {
		return nil, errors.New("there is no program to check")
	}
	for _, name := range cfg.Only {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			return nil, fmt.Errorf("there is no check %q", name)
		}
	}
	if cfg.Patience == 0 {
		cfg.Patience = 30 * time.Second
	}
	if cfg.Output == nil {
		cfg.Output = io.Discard
	}
	dir, err := os.MkdirTemp(cfg.Dir, "ordain-conformance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := newSuite(cfg, dir)
	if err != nil {
		return nil, err
	}
	defer s.end()
	for _, c := range checks {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, c.name) {
			continue
		}
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		r := Result{Name: c.name, About: c.about}
		began := time.Now()
		if err := c.run(ctx, s); err != nil {
			r.Failed = strings.TrimSpace(err.Error())
		}
		r.Took = time.Since(began)
		results = append(results, r)
		if cfg.Report != nil {
			cfg.Report(r)
		}
	}
	return results, nil
}

// check is one thing that the protocol asks for.
type check struct {
	name  string
	about string
	run   func(ctx context.Context, s *suite) error
}
