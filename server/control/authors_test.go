package control_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

var noted = intent.ResourceID{Type: "lab::Note", Agent: "a", Attribute: "n", Value: "1"}

// Git takes its time. A page gets what is known and the name of the file that is being looked up; programs that wait
// for the whole explanation share that lookup, and the pages hear of its end.
func TestPagesDoNotWaitForGit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	answer, asked := make(chan struct{}), atomic.Int32{}
	s.parts.blaming = func(_ context.Context, path string) error {
		if path == "main.cf" {
			asked.Add(1)
			<-answer
		}
		return nil
	}
	moves := s.events.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Authors })
	defer moves.Close()
	for range 2 {
		got, pending, err := s.ExplainWithin(t.Context(), s.env, 1, noted, time.Millisecond)
		if err != nil || !pending["main.cf"] || got.Attributes[0].Settings[0].Commit != nil {
			t.Fatalf("%+v, %v, %v", got, pending, err)
		}
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			got, err := s.Explain(t.Context(), s.env, 1, noted)
			if err != nil || got.Attributes[0].Settings[0].Commit == nil {
				t.Errorf("an explanation that is not complete: %+v, %v", got, err)
			}
		})
	}
	close(answer)
	all.Wait()
	select {
	case e := <-moves.Events():
		if e.Environment != s.env || e.ID != "c1" {
			t.Errorf("%+v", e)
		}
	case <-time.After(time.Minute):
		t.Fatal("pages do not hear of the author")
	}
	got, pending, err := s.ExplainWithin(t.Context(), s.env, 1, noted, 0)
	if err != nil || len(pending) != 0 || got.Attributes[0].Settings[0].Commit.Author != "Eve" {
		t.Errorf("%+v, %v, %v", got, pending, err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("Git was asked %d times", n)
	}
}

// Git fails. Pages show the value without its author, and do not ask again at once; a program does, and gets it.
func TestAuthorsThatCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	var broken atomic.Bool
	broken.Store(true)
	asked := atomic.Int32{}
	s.parts.blaming = func(_ context.Context, path string) error {
		if path != "main.cf" {
			return nil
		}
		asked.Add(1)
		if broken.Load() {
			return errors.New("the disk is gone")
		}
		return nil
	}
	for range 3 {
		got, pending, err := s.ExplainWithin(t.Context(), s.env, 1, noted, time.Minute)
		if err != nil || len(pending) != 0 || got.Attributes[0].Settings[0].Commit != nil {
			t.Fatalf("%+v, %v, %v", got, pending, err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("three pages asked Git %d times", n)
	}
	broken.Store(false)
	got, err := s.Explain(t.Context(), s.env, 1, noted)
	if err != nil || got.Attributes[0].Settings[0].Commit == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// The server stops while Git is busy: the lookup ends, and no other begins.
func TestLookupsEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	s.parts.blaming = func(ctx context.Context, path string) error {
		if path != "main.cf" {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	if _, pending, err := s.ExplainWithin(t.Context(), s.env, 1, noted, 0); err != nil || !pending["main.cf"] {
		t.Fatalf("%v, %v", pending, err)
	}
	s.Control.Close()
	got, pending, err := s.ExplainWithin(t.Context(), s.env, 1, noted, time.Minute)
	if err != nil || len(pending) != 0 || got.Attributes[0].Settings[0].Commit != nil {
		t.Errorf("%+v, %v, %v", got, pending, err)
	}
}
