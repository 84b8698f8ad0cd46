package executor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

const talkative = `
import os
import sys

from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import PurgeableResource, resource


print("imported with", os.environ["TOKEN"])


@resource("lab::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("agent", "name", "what")


@provider("lab::Thing", name="talkative")
class Talkative(CRUDHandler):
    def read_resource(self, ctx, resource):
        token = os.environ["TOKEN"]
        ctx.info("the token is %(token)s, short is %(short)s", token=token, short=os.environ["SHORT"])
        print("printed", token)
        os.write(2, b"past the task: " + token.encode() + b"\n")
        ctx.set_fact("token", token)
        ctx.set_fact("lab", os.environ.get("LAB", "none"))
        resource.what = token
        if os.environ.get("FATAL"):
            os.write(2, b"dying with " + token.encode() + b"\n")
            os._exit(3)
`

// A secret variable reaches only the handler: it appears neither in the log of
// the resource, its changes and facts, nor in what the process prints. When a
// variable changes, the next task runs in a new process.
func TestVariablesOfHandlers(t *testing.T) {
	variables := []Variable{
		{
			Name:   "TOKEN",
			Value:  "correct horse\nbattery staple",
			Secret: true,
		}, {Name: "SHORT", Value: "true", Secret: true}, {Name: "LAB", Value: "one"},
	}
	b := newBench(t, func(c *Config) {
		c.Variables = func(context.Context) ([]Variable, error) { return variables, nil }
	})
	blue := b.module("lab", talkative)
	run := func(want intent.Status) (Result, string) {
		t.Helper()
		r := b.Run(t.Context(), task(blue, "host", "a", map[string]any{"what": "x"}))
		all, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != want {
			t.Errorf("status %s, want %s: %s", r.Status, want, all)
		}
		for _, part := range []string{"correct horse", "battery staple"} {
			if strings.Contains(string(all), part) || strings.Contains(b.log.String(), part) {
				t.Errorf("the secret appears:\n%s\n%s", all, b.log.String())
			}
		}
		return r, string(all)
	}
	r, all := run(intent.StatusDeployed)
	if !strings.Contains(all, "the token is ***, short is true") || !strings.Contains(all, "printed ***") {
		t.Errorf("the log is %s", all)
	}
	if len(r.Facts) != 2 || r.Facts[0].Value != "***" || r.Facts[1].Value != "one" {
		t.Errorf("facts %v", r.Facts)
	}

	variables[2].Value = "two"
	if r, _ := run(intent.StatusDeployed); r.Facts[1].Value != "one" {
		t.Errorf("a process has other variables than it was started with: %v", r.Facts)
	}
	b.Renew()
	if r, _ := run(intent.StatusDeployed); r.Facts[1].Value != "two" {
		t.Errorf("after the change: %v", r.Facts)
	}

	variables = append(variables, Variable{Name: "FATAL", Value: "1"})
	b.Renew()
	if _, all := run(intent.StatusFailed); !strings.Contains(all, "dying with ***") {
		t.Errorf("the last words are not there: %s", all)
	}
	if !strings.Contains(b.log.String(), "past the task: ***") {
		t.Errorf("what went past the task is not in the log: %s", b.log.String())
	}
}
