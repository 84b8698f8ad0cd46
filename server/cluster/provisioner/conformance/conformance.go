// Package conformance holds plug-ins to their contract, in whatever language they are written. A plug-in's own test
// calls Provider with a world in which the plug-in may make machines, and Program if it is a program of its own.
//
//	conformance.Provider(t, func(t *testing.T) conformance.Subject {
//		… a world without machines, and a plug-in that works in it
//	})
package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/program"
	"ordain.dev/ordain/server/cluster/task"
)

// Subject is a provider plug-in and its world.
type Subject struct {
	Plugin plugin.Provider
	// Fields are the fields of the provider.
	Fields task.Fields
	// Node is filled in where the plug-in needs it: flavor, image and the like.
	Node task.Node
	// Files has the resources that the plug-in needs. nil: there are none.
	Files     plugin.Files
	Resources []task.Resource
	// Machines returns the tags of the machines in the world.
	Machines func() []string
	// Patience is how long one call may take. 0: 30 s.
	Patience time.Duration
}

// printed is an output that tells when something is written.
type printed struct {
	mu    sync.Mutex
	text  strings.Builder
	first chan struct{}
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text.Len() == 0 && len(b) > 0 {
		close(p.first)
	}
	return p.text.Write(b)
}

func (s Subject) call(t *testing.T, action task.Action, tag string) (plugin.Call, *printed) {
	out := &printed{first: make(chan struct{})}
	files := s.Files
	if files == nil {
		files = none{}
	}
	node := s.Node
	if node.Hostname == "" {
		node.Hostname = "conformance-1000.local"
	}
	return plugin.Call{
		Task: task.Task{
			ID: uuid.New(), Fence: 1, Attempt: 1, Action: action, Tag: tag, Node: node, Resources: s.Resources,
			Provider: task.Provider{
				Name:   "conformance",
				Type:   "conformance",
				Fields: s.Fields,
			}, TimeoutMS: s.patience().Milliseconds(),
		},
		Out: out, Files: files, Work: t.TempDir(),
	}, out
}

func (s Subject) patience() time.Duration {
	if s.Patience == 0 {
		return 30 * time.Second
	}
	return s.Patience
}

type none struct{}

func (none) Path(resourceType, name string) (string, error) {
	return "", errors.New("there is no resource " + name + " of the type " + resourceType)
}

// do carries out an action to its end.
func (s Subject) do(t *testing.T, action task.Action, tag string) plugin.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.patience())
	defer cancel()
	c, out := s.call(t, action, tag)
	r, err := s.act(ctx, c)
	if err != nil {
		t.Fatalf("%s: %v; it printed:\n%s", action, err, out.text.String())
	}
	return r
}

func (s Subject) act(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	switch c.Action {
	case task.Create:
		return s.Plugin.Create(ctx, c)
	case task.Confirm:
		return s.Plugin.Confirm(ctx, c)
	}
	return s.Plugin.Delete(ctx, c)
}

func (s Subject) want(t *testing.T, when string, tags ...string) {
	t.Helper()
	got := slices.Sorted(slices.Values(s.Machines()))
	slices.Sort(tags)
	if !slices.Equal(got, tags) {
		t.Fatalf("%s: the machines are %q, want %q", when, got, tags)
	}
}

// cuts is how often Provider cuts a call off at other moments.
const cuts = 8

// Provider tests a provider plug-in. make makes a world without machines.
func Provider(t *testing.T, make func(t *testing.T) Subject) {
	t.Run("one life of a machine", func(t *testing.T) {
		s := make(t)
		tag := uuid.NewString()
		s.do(t, task.Create, tag)
		s.want(t, "after create", tag)
		if r := s.do(t, task.Confirm, tag); r.Addresses["access_v4"] == "" || r.Addresses["bind_v4"] == "" {
			t.Errorf("confirm returned the addresses %v, want access_v4 and bind_v4", r.Addresses)
		}
		s.do(t, task.Delete, tag)
		s.want(t, "after delete")
	})
	t.Run("creating twice with one tag gives one machine", func(t *testing.T) {
		s := make(t)
		tag := uuid.NewString()
		first, second := s.do(t, task.Create, tag), s.do(t, task.Create, tag)
		s.want(t, "after two creates", tag)
		if string(first.Facts["providerid"]) != string(second.Facts["providerid"]) {
			t.Errorf("the ids are %s and %s", first.Facts["providerid"], second.Facts["providerid"])
		}
	})
	t.Run("other tags are left alone", func(t *testing.T) {
		s := make(t)
		one, other := uuid.NewString(), uuid.NewString()
		s.do(t, task.Create, one)
		s.do(t, task.Create, other)
		s.want(t, "after two creates", one, other)
		s.do(t, task.Delete, one)
		s.want(t, "after one delete", other)
	})
	t.Run("deleting what is not there is fine", func(t *testing.T) {
		s := make(t)
		tag := uuid.NewString()
		s.do(t, task.Delete, tag)
		s.do(t, task.Create, tag)
		s.do(t, task.Delete, tag)
		s.do(t, task.Delete, tag)
		s.want(t, "at the end")
	})
	t.Run("confirming what is not there fails", func(t *testing.T) {
		s := make(t)
		ctx, cancel := context.WithTimeout(t.Context(), s.patience())
		defer cancel()
		c, _ := s.call(t, task.Confirm, uuid.NewString())
		if _, err := s.Plugin.Confirm(ctx, c); err == nil {
			t.Error("confirm found a machine")
		}
	})
	t.Run("replaced, there is one machine", func(t *testing.T) {
		s := make(t)
		tag := uuid.NewString()
		s.do(t, task.Create, tag)
		ctx, cancel := context.WithTimeout(t.Context(), s.patience())
		defer cancel()
		c, _ := s.call(t, task.Create, tag)
		c.Replace = true
		if _, err := s.Plugin.Create(ctx, c); err != nil {
			t.Fatal(err)
		}
		s.want(t, "after it was replaced", tag)
	})
	for _, action := range []task.Action{task.Create, task.Delete} {
		t.Run("cut off in the middle of "+string(action)+", then again", func(t *testing.T) {
			s := make(t)
			tag := uuid.NewString()
			began := time.Now()
			s.do(t, task.Create, tag)
			took := time.Since(began)
			for i := range cuts + 1 {
				if action == task.Create {
					s.do(t, task.Delete, tag)
				} else {
					s.do(t, task.Create, tag)
				}
				s.cut(t, action, tag, i, took)
				if got := s.Machines(); len(got) > 1 {
					t.Fatalf("after it was cut off, there are the machines %q", got)
				}
				s.do(t, action, tag)
				if action == task.Create {
					s.want(t, "after it was cut off, and done again", tag)
				} else {
					s.want(t, "after it was cut off, and done again")
				}
			}
		})
	}
}

// cut begins an action and cuts it off: the first time when it prints something, then at moments between its
// beginning and its usual end.
func (s Subject) cut(t *testing.T, action task.Action, tag string, n int, took time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.patience())
	defer cancel()
	c, out := s.call(t, action, tag)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.act(ctx, c)
	}()
	var moment <-chan time.Time
	var first <-chan struct{}
	if n == 0 {
		first = out.first
	} else {
		moment = time.After(took * time.Duration(n) / cuts)
	}
	select {
	case <-first:
	case <-moment:
	case <-ended:
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(s.patience()):
		t.Fatal("the plug-in goes on although its context has ended")
	}
}

// Program tests how a plug-in that is a program of its own treats what it does not understand. It needs no world.
func Program(t *testing.T, p *program.Program) {
	speak := func(t *testing.T, action task.Action, text string) error {
		s := Subject{}
		ctx, cancel := context.WithTimeout(t.Context(), s.patience())
		defer cancel()
		c, _ := s.call(t, action, uuid.NewString())
		_, err := p.Speak(ctx, c, []byte(text))
		if ctx.Err() != nil {
			t.Fatal("the plug-in does not end")
		}
		return err
	}
	t.Run("an unknown action is refused", func(t *testing.T) {
		s := Subject{Fields: task.Fields{}}
		ctx, cancel := context.WithTimeout(t.Context(), s.patience())
		defer cancel()
		c, _ := s.call(t, "dance", uuid.NewString())
		if _, err := p.Run(ctx, c); !plugin.IsRefused(err) {
			t.Errorf("it answered %v", err)
		}
	})
	for name, text := range map[string]string{
		"nothing": "", "half a task": `{"protocol":1,"action":"create","tag":"x`, "no JSON": "hello\n",
		"no object": "[1,2]",
	} {
		t.Run(name+" is not carried out", func(t *testing.T) {
			if err := speak(t, task.Create, text); err == nil {
				t.Error("it answered that it was done")
			}
		})
	}
}
