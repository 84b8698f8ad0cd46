// Package conformance holds plug-ins to their contract, in whatever language they are written. It is a list of checks;
// `ordain provisioner conformance` runs them for a program, and package conformancetest as tests.
//
//	Providers: the life of a machine, in a world that the plug-in works in ─┐
//	                                                                        ├─▶ Check ── Run ──▶ nil, or what is wrong
//	Programs:  what a program does with tasks that it cannot understand ────┘
package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/program"
	"ordain.dev/ordain/server/cluster/task"
)

// Check is one rule of the contract.
type Check struct {
	Name string
	run  func(s *session) error
}

// Run checks a subject. The error says what the plug-in did, and what it should have done. Machines that the check made
// are deleted, if the plug-in deletes machines at all.
func (c Check) Run(ctx context.Context, s Subject) (err error) {
	one := &session{Subject: s, ctx: ctx}
	if one.dir, err = os.MkdirTemp("", "ordain-conformance-"); err != nil {
		return err
	}
	defer os.RemoveAll(one.dir)
	if err := os.Chmod(one.dir, 0o711); err != nil { // a confined plug-in passes through it as another user
		return err
	}
	if s.Machines != nil {
		if one.before, err = s.Machines(ctx); err != nil {
			return fmt.Errorf("cannot list the machines: %w", err)
		}
	}
	defer one.tidy()
	return c.run(one)
}

// Subject is a plug-in and its world.
type Subject struct {
	// Plugin is checked by Providers, and Program by Programs.
	Plugin  plugin.Provider
	Program *program.Program
	// Fields are the fields of the provider.
	Fields task.Fields
	// Node is filled in where the plug-in needs it: flavor, image and the like.
	Node task.Node
	// Files has the resources that the plug-in needs. nil: there are none.
	Files     plugin.Files
	Resources []task.Resource
	// Machines returns the tags of the machines in the world. Without it, checks only go by what the plug-in answers.
	Machines func(ctx context.Context) ([]string, error)
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

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// session is one run of a check.
type session struct {
	Subject
	ctx    context.Context
	dir    string
	calls  int
	before []string // machines that were there already
	tags   []string
}

// tag returns a tag for a new machine.
func (s *session) tag() string {
	s.tags = append(s.tags, uuid.NewString())
	return s.tags[len(s.tags)-1]
}

func (s *session) call(action task.Action, tag string) (plugin.Call, *printed, error) {
	out := &printed{first: make(chan struct{})}
	files := s.Files
	if files == nil {
		files = none{}
	}
	node := s.Node
	if node.Hostname == "" {
		node.Hostname = "conformance-1000.local"
	}
	s.calls++
	work := filepath.Join(s.dir, strconv.Itoa(s.calls))
	return plugin.Call{
		Task: task.Task{
			ID: uuid.New(), Fence: 1, Attempt: 1, Action: action, Tag: tag, Node: node, Resources: s.Resources,
			Provider:  task.Provider{Name: "conformance", Type: "conformance", Fields: s.Fields},
			TimeoutMS: s.patience().Milliseconds(),
		},
		Out: out, Files: files, Work: work,
	}, out, os.Mkdir(work, 0o711)
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
func (s *session) do(action task.Action, tag string) (plugin.Result, error) {
	return s.perform(action, tag, false)
}

func (s *session) perform(action task.Action, tag string, replace bool) (plugin.Result, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.patience())
	defer cancel()
	c, out, err := s.call(action, tag)
	if err != nil {
		return plugin.Result{}, err
	}
	c.Replace = replace
	r, err := s.act(ctx, c)
	if err != nil {
		err = fmt.Errorf("%s failed: %w", action, err)
		if text := strings.TrimSpace(out.String()); text != "" {
			err = fmt.Errorf("%w; it printed:\n%s", err, text)
		}
	}
	return r, err
}

func (s *session) act(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	switch c.Action {
	case task.Create:
		return s.Plugin.Create(ctx, c)
	case task.Confirm:
		return s.Plugin.Confirm(ctx, c)
	}
	return s.Plugin.Delete(ctx, c)
}

// step is an action, and which machines there are after it.
type step struct {
	action task.Action
	tag    string
	then   []string
}

// all carries out steps, and looks at the machines after each of them.
func (s *session) all(steps ...step) error {
	for _, one := range steps {
		if _, err := s.do(one.action, one.tag); err != nil {
			return err
		}
		if err := s.want("after "+string(one.action), one.then...); err != nil {
			return err
		}
	}
	return nil
}

// want compares the machines that were made with the tags that should be there.
func (s *session) want(when string, tags ...string) error {
	if s.Machines == nil {
		return nil
	}
	got, err := s.made()
	if err != nil {
		return err
	}
	tags = slices.Sorted(slices.Values(tags))
	if !slices.Equal(got, tags) {
		return fmt.Errorf("%s, the machines have the tags %q, and should have %q", when, got, tags)
	}
	return nil
}

// made returns the tags of the machines that were not there before.
func (s *session) made() ([]string, error) {
	if s.Machines == nil {
		return nil, nil
	}
	got, err := s.Machines(s.ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list the machines: %w", err)
	}
	got = slices.DeleteFunc(slices.Sorted(slices.Values(got)), func(tag string) bool {
		return slices.Contains(s.before, tag)
	})
	return got, nil
}

// tidy deletes what a check has left.
func (s *session) tidy() {
	if s.Plugin == nil {
		return
	}
	for _, tag := range s.tags {
		_, _ = s.do(task.Delete, tag) // a plug-in that cannot is told so by the checks
	}
}

// cuts is how often a call is cut off at other moments.
const cuts = 8

// Providers returns the checks of provider plug-ins.
func Providers() []Check {
	return []Check{
		{"one life of a machine", oneLife},
		{"creating twice with one tag gives one machine", createTwice},
		{"other tags are left alone", otherTags},
		{"deleting what is not there is fine", deleteNothing},
		{"confirming what is not there fails", confirmNothing},
		{"replaced, there is one machine", replaced},
		{"cut off in the middle of create, then again", func(s *session) error { return s.cutOff(task.Create) }},
		{"cut off in the middle of delete, then again", func(s *session) error { return s.cutOff(task.Delete) }},
	}
}

func oneLife(s *session) error {
	tag := s.tag()
	if err := s.all(step{task.Create, tag, []string{tag}}); err != nil {
		return err
	}
	r, err := s.do(task.Confirm, tag)
	if err != nil {
		return err
	}
	if r.Addresses["access_v4"] == "" || r.Addresses["bind_v4"] == "" {
		return fmt.Errorf("confirm returned the addresses %v, and should return access_v4 and bind_v4", r.Addresses)
	}
	return s.all(step{task.Delete, tag, nil})
}

func createTwice(s *session) error {
	tag := s.tag()
	first, err := s.do(task.Create, tag)
	if err != nil {
		return err
	}
	second, err := s.do(task.Create, tag)
	if err != nil {
		return err
	}
	if string(first.Facts["providerid"]) != string(second.Facts["providerid"]) {
		return fmt.Errorf("the fact providerid is %s at first and then %s", first.Facts["providerid"],
			second.Facts["providerid"])
	}
	return s.want("after two creates", tag)
}

func otherTags(s *session) error {
	one, other := s.tag(), s.tag()
	return s.all(step{task.Create, one, []string{one}}, step{task.Create, other, []string{one, other}},
		step{task.Delete, one, []string{other}})
}

func deleteNothing(s *session) error {
	tag := s.tag()
	return s.all(step{task.Delete, tag, nil}, step{task.Create, tag, []string{tag}}, step{task.Delete, tag, nil},
		step{task.Delete, tag, nil})
}

func confirmNothing(s *session) error {
	if _, err := s.do(task.Confirm, s.tag()); err == nil {
		return errors.New("confirm found a machine that was never made")
	}
	return nil
}

func replaced(s *session) error {
	tag := s.tag()
	if err := s.all(step{task.Create, tag, []string{tag}}); err != nil {
		return err
	}
	if _, err := s.perform(task.Create, tag, true); err != nil {
		return err
	}
	return s.want("after it was replaced", tag)
}

// cutOff begins an action several times, and cuts it off at other moments.
func (s *session) cutOff(action task.Action) error {
	tag := s.tag()
	began := time.Now()
	if _, err := s.do(task.Create, tag); err != nil {
		return err
	}
	took := time.Since(began)
	opposite, then := task.Delete, []string{tag}
	if action == task.Delete {
		opposite, then = task.Create, nil
	}
	for i := range cuts + 1 {
		if _, err := s.do(opposite, tag); err != nil {
			return err
		}
		if err := s.cut(action, tag, i, took); err != nil {
			return err
		}
		got, err := s.made()
		if err != nil {
			return err
		}
		if len(got) > 1 {
			return fmt.Errorf("after it was cut off, the machines have the tags %q", got)
		}
		if _, err := s.do(action, tag); err != nil {
			return err
		}
		if err := s.want("after it was cut off, and done again", then...); err != nil {
			return err
		}
	}
	return nil
}

// cut begins an action and cuts it off: the first time when it prints something, then at moments between its
// beginning and its usual end.
func (s *session) cut(action task.Action, tag string, n int, took time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.patience())
	defer cancel()
	c, out, err := s.call(action, tag)
	if err != nil {
		return err
	}
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
		return nil
	case <-time.After(s.patience()):
		return errors.New("the plug-in goes on although its context has ended")
	}
}

// Programs returns the checks of plug-ins that are programs of their own: what they do with what they do not
// understand. They need no world.
func Programs() []Check {
	checks := []Check{{"an unknown action is refused", func(s *session) error {
		ctx, cancel := context.WithTimeout(s.ctx, s.patience())
		defer cancel()
		c, _, err := s.call("dance", uuid.NewString())
		if err != nil {
			return err
		}
		if _, err := s.Program.Run(ctx, c); !plugin.IsRefused(err) {
			return fmt.Errorf("it should refuse the action, and answered: %w", orDone(err))
		}
		return nil
	}}}
	for _, one := range [][2]string{
		{"nothing", ""}, {"half a task", `{"protocol":1,"action":"create","tag":"x`}, {"no JSON", "hello\n"},
		{"no object", "[1,2]"},
	} {
		checks = append(checks, Check{one[0] + " is not carried out", func(s *session) error {
			ctx, cancel := context.WithTimeout(s.ctx, s.patience())
			defer cancel()
			c, _, err := s.call(task.Create, uuid.NewString())
			if err != nil {
				return err
			}
			_, err = s.Program.Speak(ctx, c, []byte(one[1]))
			switch {
			case ctx.Err() != nil:
				return errors.New("the plug-in does not end")
			case err == nil:
				return errors.New("it answered that it was done")
			}
			return nil
		}})
	}
	return checks
}

// orDone is the error of a call, or says that there was none.
func orDone(err error) error {
	if err == nil {
		return errors.New("done")
	}
	return err
}
