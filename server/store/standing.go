package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

type standingRow struct {
	Environment uuid.UUID
	Active      json.RawMessage
	Newer       json.RawMessage
	Git         json.RawMessage
	Tip         json.RawMessage
	Last        json.RawMessage
	Running     json.RawMessage
	Waiting     json.RawMessage
	Blocks      json.RawMessage
	Promotion   json.RawMessage
}

// standingRun is a run, as StandingFacts returns it.
type standingRun struct {
	ID           uuid.UUID    `json:"id"`
	Revision     revisionJSON `json:"revision"`
	TriggerType  string       `json:"trigger_type"`
	Requested    time.Time    `json:"requested"`
	Started      *time.Time   `json:"started"`
	Completed    *time.Time   `json:"completed"`
	Success      bool         `json:"success"`
	Version      int          `json:"version"`
	CancelledBy  string       `json:"cancelled_by"`
	CancelledWhy string       `json:"cancelled_why"`
	CancelledAt  *time.Time   `json:"cancelled_at"`
	Stage        string       `json:"stage"`
	Seen         *time.Time   `json:"seen"`
	Diagnostic   string       `json:"diagnostic"`
	Printed      string       `json:"printed"`
}

func (r *standingRun) value() *intent.LastRun {
	if r == nil {
		return nil
	}
	return &intent.LastRun{
		ID: r.ID, Revision: r.Revision.value(), Trigger: r.TriggerType, Requested: r.Requested.UTC(),
		Started: utc(r.Started), Completed: utc(r.Completed), Success: r.Success, Version: r.Version, Stage: r.Stage,
		Cancelled: actorOf(r.CancelledBy, r.CancelledWhy, r.CancelledAt), Problem: r.problem(),
	}
}

// longestProblem is how much of the reason of a failure a standing quotes, in characters.
const longestProblem = 300

// problem is why a run failed: the first error of the model, else the last line that was printed.
func (r *standingRun) problem() string {
	text := r.Diagnostic
	if text == "" {
		printed, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(r.Printed, "\n", ""))
		if err != nil {
			return ""
		}
		lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(printed), "\uFFFD")), "\n")
		text = lines[len(lines)-1]
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > longestProblem {
		text = string(runes[:longestProblem]) + "…"
	}
	return text
}

// standingVersion is a version, as StandingFacts returns it.
type standingVersion struct {
	Number     int               `json:"number"`
	Created    time.Time         `json:"created"`
	Released   *time.Time        `json:"released"`
	Status     string            `json:"status"`
	Total      int               `json:"total"`
	Provenance intent.Provenance `json:"provenance"`
	Hold       *intent.Hold      `json:"hold"`
}

func (v *standingVersion) value(env intent.EnvironmentID) *intent.Version {
	if v == nil {
		return nil
	}
	return &intent.Version{
		Environment: env, Number: v.Number, Created: v.Created.UTC(), Released: utc(v.Released),
		Status: intent.VersionStatus(v.Status), Total: v.Total, Provenance: v.Provenance, Hold: v.Hold,
	}
}

type standingGit struct {
	Kind    string    `json:"kind"`
	Commit  string    `json:"commit"`
	Message string    `json:"message"`
	Advice  string    `json:"advice"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Checked time.Time `json:"checked"`
}

type standingBlock struct {
	Commit string    `json:"commit"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

type standingPromotion struct {
	Commit     string                 `json:"commit"`
	Subject    string                 `json:"subject"`
	Author     string                 `json:"author"`
	SourceName string                 `json:"source_name"`
	Created    time.Time              `json:"created"`
	Gates      []intent.PromotionGate `json:"gates"`
}

func (r standingRow) value() (f intent.StandingFacts, err error) {
	f.Environment.ID = r.Environment
	active, err1 := maybeJSON[standingVersion](r.Active)
	newer, err2 := maybeJSON[standingVersion](r.Newer)
	git, err3 := maybeJSON[standingGit](r.Git)
	tip, err4 := maybeJSON[standingRun](r.Tip)
	last, err5 := maybeJSON[standingRun](r.Last)
	running, err6 := maybeJSON[standingRun](r.Running)
	waiting, err7 := maybeJSON[standingRun](r.Waiting)
	blocks, err8 := maybeJSON[[]standingBlock](r.Blocks)
	promotion, err9 := maybeJSON[standingPromotion](r.Promotion)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9); err != nil {
		return f, err
	}
	f.Active, f.Newer = active.value(r.Environment), newer.value(r.Environment)
	f.Tip, f.Last, f.Running, f.Waiting = tip.value(), last.value(), running.value(), waiting.value()
	if tip != nil && tip.Seen != nil {
		f.Seen = tip.Seen.UTC()
	}
	if git != nil {
		f.Git = &intent.GitState{
			Kind: intent.GitKind(git.Kind), Commit: git.Commit, Message: git.Message, Advice: git.Advice,
			Reason: git.Reason, Since: git.Since.UTC(), Checked: git.Checked.UTC(),
		}
	}
	if blocks != nil {
		for _, b := range *blocks {
			f.Blocks = append(f.Blocks, intent.Block{Commit: b.Commit, By: b.By, Reason: b.Reason, At: b.At.UTC()})
		}
	}
	if p := promotion; p != nil {
		f.Promotion = &intent.Promotion{
			Environment: r.Environment, Commit: p.Commit, Subject: p.Subject, Author: p.Author,
			SourceName: p.SourceName,
			Created:    p.Created.UTC(), Gates: p.Gates, State: intent.PromotionWaiting,
		}
	}
	return f, nil
}

// StandingFacts returns what the standing of each environment is decided from, without the environments themselves.
// One that does not exist is left out.
func (s *Store) StandingFacts(
	ctx context.Context,
	envs []intent.EnvironmentID,
) (map[intent.EnvironmentID]intent.StandingFacts, error) {
	list, err := listed(ctx, s, "store.StandingFacts", standingRow.value, statements.StandingFacts, envs)
	out := make(map[intent.EnvironmentID]intent.StandingFacts, len(list))
	for _, f := range list {
		out[f.Environment.ID] = f
	}
	return out, err
}
