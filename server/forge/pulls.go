package forge

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/client"
	"ordain.dev/ordain/server/store"
)

// LookUp records that a pull request is to be looked up at its forge, and
// announces it on the bus, which wakes the service. Conflict when the
// environment shows no previews.
func LookUp(
	ctx context.Context,
	records *store.Store,
	events *bus.Bus,
	e intent.Environment,
	number int,
	now time.Time,
) error {
	if number <= 0 || number > 1<<31-1 {
		return fault.New("forge.PullMoved", fault.Invalid, "a pull request has a number")
	}
	if err := PreviewsWanted("forge.PullMoved", e); err != nil {
		return err
	}
	if err := records.AskForge(ctx, e.ID, number, now); err != nil {
		return err
	}
	events.Publish(bus.Event{Environment: e.ID, Topic: bus.Pull})
	return nil
}

// PreviewsWanted returns a Conflict when an environment shows no previews of pull requests.
func PreviewsWanted(op string, e intent.Environment) error {
	if e.Text("pull_previews") == "off" {
		return fault.New(op, fault.Conflict, "the environment "+e.Name+" shows no previews of pull requests").
			Hint("set pull_previews to trusted")
	}
	return nil
}

// ApproveCommand is the command that lets the code of a pull request run.
func ApproveCommand(e intent.Environment, p intent.PullRequest) string {
	return fmt.Sprintf("ordain pull approve %s %d %s", ShellWord(e.Name), p.Number, p.Head)
}

// ShellWord makes a name safe to paste into a shell.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// StartPreview records a new preview of a pull request and lets it begin; the
// one before is cancelled.
func (s *Service) StartPreview(ctx context.Context, e intent.Environment, p intent.PullRequest) error {
	const op = "forge.StartPreview"
	switch {
	case e.Halted:
		return fault.New(op, fault.Conflict, "the environment "+e.Name+" is halted").Hint("resume it first")
	case !e.Bool("server_compile"):
		return fault.New(op, fault.Conflict, "the environment "+e.Name+" is not compiled on the server")
	}
	compile := uuid.New()
	run := intent.DryRun{ID: uuid.New(), Environment: e.ID, Date: s.cfg.Now(), Commit: p.Head, Compile: &compile}
	active, err := s.cfg.Store.ActiveVersion(ctx, e.ID)
	if err != nil {
		return err
	}
	if active != nil {
		run.Base = active.Number
	}
	before, err := s.cfg.Store.Asking(e.ID, intent.RequestDryRun, run.ID).StartPullPreview(ctx, p.Number, run)
	if err != nil {
		return err
	}
	if err := s.dropPreview(ctx, e.ID, before); err != nil {
		s.cfg.Logger.Warn("an older preview was not removed", "environment", e.ID, "pull", p.Number, "error", err)
	}
	s.publish(e.ID, bus.DryRun, run.ID.String())
	s.publish(e.ID, bus.Pull, "")
	s.cfg.Keepers.Attend(ctx, e.ID)
	return nil
}

// renewAfter is how long a preview waits for the deployment of a new base: what
// is deployed meanwhile would show as a change of the pull request.
const renewAfter = 5 * time.Minute

// renewPreviews computes one preview in each of the environments again, if it was
// compared with another commit than the one that is deployed by now. The end of
// each preview lets the next begin.
func (s *Service) renewPreviews(ctx context.Context, stale map[intent.EnvironmentID]bool) {
	for _, env := range s.cfg.Keepers.Owned() {
		if !stale[env] {
			continue
		}
		err := s.renewPreview(ctx, env)
		if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			s.cfg.Logger.Warn("cannot compute a preview again yet", "environment", env, "error", err)
		}
	}
}

func (s *Service) renewPreview(ctx context.Context, env intent.EnvironmentID) error {
	number, err := s.cfg.Store.StalePull(ctx, env, s.cfg.Now().Add(-renewAfter))
	if err != nil || number == 0 {
		return err
	}
	e, err := s.cfg.Store.Environment(ctx, env)
	if err != nil || e.Text("pull_previews") == "off" || e.Halted || !e.Bool("server_compile") {
		return err
	}
	p, err := s.cfg.Store.PullRequest(ctx, env, number)
	if err != nil {
		return err
	}
	return s.StartPreview(ctx, e, p)
}

// dropPreview cancels a preview and removes its version; nil means that there is none.
func (s *Service) dropPreview(ctx context.Context, env intent.EnvironmentID, id *intent.ActionID) error {
	if id == nil {
		return nil
	}
	run, _, err := s.cfg.Store.DryRun(ctx, env, *id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if run.Ended == nil {
		err := s.cfg.Keepers.CancelDryRun(ctx, env, *id)
		if err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	if run.Version == 0 {
		return nil
	}
	v, err := s.cfg.Store.Version(ctx, env, run.Version)
	if err == nil && v.Preview {
		err = s.cfg.Store.DeleteVersion(ctx, env, run.Version)
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// lookAtPull brings the record of a pull request to what its forge says, and
// starts its preview where its code may run.
func (s *Service) lookAtPull(ctx context.Context, e intent.Environment, f client.Forge, number int) error {
	known, err := s.cfg.Store.PullRequest(ctx, e.ID, number)
	isKnown := err == nil
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	found, err := f.Pull(ctx, number)
	if fault.Is(err, fault.NotFound) && isKnown { // it was deleted
		found, err = client.Pull{
			Number: number, State: intent.PullIsClosed, Title: known.Title, URL: known.URL,
			Author: known.Author, Base: known.Base, Head: known.Head,
		}, nil
	}
	if err != nil {
		return err
	}
	branch, err := s.branch(ctx, e)
	if err != nil {
		return err
	}
	mode := e.Text("pull_previews")
	elsewhere := branch == "" || found.Base != branch
	if !isKnown && (elsewhere || found.State != intent.PullIsOpen || mode == "off") {
		return nil // it is not towards this environment, or it is over
	}
	if elsewhere && found.State == intent.PullIsOpen {
		found.State = intent.PullIsClosed // as far as this environment is concerned
	}
	p := merged(known, found)
	p.Environment, p.Updated = e.ID, s.cfg.Now()
	p.Trusted = mode == "all" || mode == "trusted" && found.Trusted && !found.Fork
	if p.State != intent.PullIsOpen {
		return s.closePull(ctx, known, p)
	}
	news := !isKnown || known.Head != p.Head || known.State != p.State || known.MayRun() != p.MayRun()
	if !p.MayRun() {
		return s.awaitApproval(ctx, known, p, news)
	}
	if err := s.cfg.Store.SavePull(ctx, p, false, s.cfg.Now()); err != nil {
		return err
	}
	if !news && p.PreviewOf == p.Head && p.Preview != nil && p.PreviewState() != intent.PreviewOld {
		return nil
	}
	err = s.StartPreview(ctx, e, p)
	if fault.Is(err, fault.Conflict) {
		p.Problem = err.Error()
		return s.cfg.Store.SavePull(ctx, p, news, s.cfg.Now())
	}
	return err
}

// merged is a pull request as it was known, with what its forge says now.
func merged(known intent.PullRequest, found client.Pull) intent.PullRequest {
	p := known
	p.Number, p.State, p.Title, p.URL, p.Author = found.Number, found.State, found.Title, found.URL, found.Author
	p.Fork, p.Base, p.Head, p.Problem = found.Fork, found.Base, found.Head, ""
	return p
}

// awaitApproval saves a pull request whose code may not run.
func (s *Service) awaitApproval(ctx context.Context, known, now intent.PullRequest, news bool) error {
	if err := s.cfg.Store.SavePull(ctx, now, news, s.cfg.Now()); err != nil {
		return err
	}
	if known.Head != "" && known.Head != now.Head {
		return s.dropPreview(ctx, now.Environment, known.DryRun) // its commit is not the head any more
	}
	return nil
}

// closePull cleans up after a pull request that is not open any more.
func (s *Service) closePull(ctx context.Context, known, now intent.PullRequest) error {
	wasOpen := known.State == intent.PullIsOpen
	if err := s.dropPreview(ctx, now.Environment, known.DryRun); err != nil {
		return err
	}
	return s.cfg.Store.SavePull(ctx, now, wasOpen && known.Comment != "", s.cfg.Now())
}

// branch is the branch towards which pull requests concern an environment; empty
// when it follows no branch.
func (s *Service) branch(ctx context.Context, e intent.Environment) (string, error) {
	if b := e.Source.Branch; b != "" {
		if strings.HasPrefix(b, "semver:") {
			return "", nil
		}
		return strings.TrimPrefix(b, "refs/heads/"), nil
	}
	last, err := s.cfg.Store.LastCompile(ctx, e.ID)
	if err != nil || last == nil {
		return "", err
	}
	return last.Revision.Branch, nil
}

// lookAtPulls compares the open pull requests of a forge with the record, and
// has those looked up that differ.
func (s *Service) lookAtPulls(ctx context.Context, e intent.Environment, f client.Forge) error {
	branch, err := s.branch(ctx, e)
	if err != nil || branch == "" || e.Text("pull_previews") == "off" {
		return err
	}
	open, err := f.Pulls(ctx, branch)
	if err != nil {
		return err
	}
	known, err := s.cfg.Store.PullRequests(ctx, e.ID)
	if err != nil {
		return err
	}
	heads := map[int]string{}
	for _, p := range known {
		if p.State == intent.PullIsOpen {
			heads[p.Number] = p.Head
		}
	}
	var differ []int
	for _, p := range open {
		if heads[p.Number] != p.Head {
			differ = append(differ, p.Number)
		}
		delete(heads, p.Number)
	}
	for number := range heads {
		differ = append(differ, number)
	}
	for _, number := range differ {
		if err := s.cfg.Store.AskForge(ctx, e.ID, number, s.cfg.Now()); err != nil {
			return err
		}
	}
	return nil
}

// comment brings the comment on a pull request up to date.
func (s *Service) comment(ctx context.Context, e intent.Environment, f client.Forge, number int) error {
	p, err := s.cfg.Store.PullRequest(ctx, e.ID, number)
	if fault.Is(err, fault.NotFound) || err == nil && !e.Bool("pull_comment") {
		return nil
	}
	if err != nil {
		return err
	}
	report, err := s.Report(ctx, e, p)
	if err != nil {
		return err
	}
	id, err := f.UpsertComment(ctx, client.Comment{
		Number: number, ID: p.Comment, Marker: Marker(e.ID), Body: report.Text(),
	})
	if err != nil || id == p.Comment {
		return err
	}
	return s.cfg.Store.SetPullComment(ctx, e.ID, number, id)
}
