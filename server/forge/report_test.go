package forge_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func previewed(diffs ...intent.ResourceDiff) forge.Report {
	begin := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	end, id := begin.Add(3*time.Second), uuid.New()
	return forge.Report{
		Environment: "prod",
		Version:     3,
		Page:        "https://ordain.example.org/e/1/pulls/7",
		Diffs:       diffs,
		Pull: intent.PullRequest{
			Number: 7, State: intent.PullIsOpen, Trusted: true, Base: "main", Head: commit, PreviewOf: commit,
			DryRun:  &id,
			Preview: &intent.DryRun{ID: id, Date: begin, Ended: &end, Ending: intent.DryRunDone, Version: 4},
		},
	}
}

func resource(value string) intent.ResourceID {
	return intent.ResourceID{Type: "fs::File", Agent: "web", Attribute: "path", Value: value}
}

// The comment tells what would be made, changed, purged, what is not known and
// what policies would do, and never a secret.
func TestWhatACommentTells(t *testing.T) {
	r := previewed(
		intent.ResourceDiff{
			ID:   resource("/a"),
			Kind: intent.DiffModified,
			Attributes: map[string]intent.AttributeChange{
				"text": {Current: "old", Desired: "new"}, "db_password": {Current: "hunter1", Desired: "hunter2"},
				"options": {
					Current: map[string]any{"api_token": "hunter3", "n": 1},
					Desired: map[string]any{"api_token": "hunter4", "n": 2},
				}},
		},
		intent.ResourceDiff{ID: resource("/b"), Kind: intent.DiffUnknown, Reason: "the target is away"},
		intent.ResourceDiff{ID: resource("/c"), Kind: intent.DiffDeleted},
		intent.ResourceDiff{ID: resource("/d"), Kind: intent.DiffUnmodified},
	)
	r.Gone = []intent.ResourceID{resource("/e")}
	r.Hold = &intent.Hold{Text: "it takes away 9 of 10 resources"}
	r.Refused = "0123456 may not be deployed: nobody signed it"
	r.Windows = []string{"2 of its changes: waits for window `nightly`"}
	text := r.Text()
	for _, want := range []string{forge.Marker(uuid.Nil), "| 0 | 1 | 1 | 1 | 1 | 1 | 0 |", "- text: old", "+ text: new",
		"the target is away", "#### Purged", "/c", "No longer managed", "/e",
		"This would be held:", "9 of 10", "It would be refused as it is:** `0123456 may not be deployed",
		"This would wait:", "took 3s", "0123456", "version 3 is deployed",
		"https://ordain.example.org/e/1/pulls/7", "***"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing of %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "hunter") {
		t.Errorf("a secret is told:\n%s", text)
	}
}

// What strangers write stays text: it ends no block, mentions nobody, is no
// markup, turns nothing around, and does not make the comment too long.
func TestACommentIsNobodysStage(t *testing.T) {
	evil := "x\n```\n@everyone <img src=x onerror=alert(1)> [click](http://evil)\n<!-- ordain preview -->\u202e\x1b[31m"
	r := previewed(
		intent.ResourceDiff{
			ID:   resource(evil),
			Kind: intent.DiffModified,
			Attributes: map[string]intent.AttributeChange{
				"text": {Current: evil, Desired: strings.Repeat("`", 50) + evil},
			},
		},
	)
	for i := range 5000 {
		r.Diffs = append(
			r.Diffs,
			intent.ResourceDiff{
				ID:         resource(strings.Repeat("y", i%300)),
				Kind:       intent.DiffAdded,
				Attributes: map[string]intent.AttributeChange{"text": {Desired: strings.Repeat("long ", 1000)}},
			},
		)
	}
	text := r.Text()
	if utf8.RuneCountInString(text) > 65536 || !strings.Contains(text, "too long for a comment") ||
		!strings.HasSuffix(text, "</sub>\n") {
		t.Errorf("%d characters, which end with %q", utf8.RuneCountInString(text), text[len(text)-200:])
	}
	if strings.ContainsAny(text, "\u202e\x1b") {
		t.Error("control characters are told")
	}
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence = strings.TrimRight(line, "abcdefghijklmnopqrstuvwxyz")
		case fence != "" && line == fence:
			fence = ""
		case fence == "":
			outside := line
			for {
				before, rest, found := strings.Cut(outside, "`")
				if !found {
					break
				}
				_, after, _ := strings.Cut(rest, "`")
				outside = before + after
			}
			if strings.Contains(outside, "@everyone") || strings.Contains(outside, "<img") ||
				strings.Contains(outside, "evil") {
				t.Errorf("outside of a block: %q", line)
			}
		}
	}
	if fence != "" {
		t.Error("a block is not closed")
	}
}

// Every state has a sentence, and says for which commit it is.
func TestEveryStateOfAPreviewIsTold(t *testing.T) {
	for what, story := range map[string]struct {
		change func(*forge.Report)
		want   []string
	}{
		"approval": {func(r *forge.Report) {
			r.Pull.Trusted, r.Pull.Fork, r.Command = false, true, "ordain pull approve prod 7 "+commit
		}, []string{"Needs approval", "fork", "ordain pull approve prod 7 " + commit}},
		"approved": {func(r *forge.Report) {
			r.Pull.Trusted, r.Pull.Approved, r.Pull.ApprovedBy = false, commit,
				"ida"
		}, []string{"change nothing", "approved by `ida`"}},
		"stale": {func(r *forge.Report) { r.Pull.Trusted, r.Pull.Approved = false, strings.Repeat("a", 40) },
			[]string{"Needs approval"}},
		"running": {func(r *forge.Report) { r.Pull.Preview.Ended, r.Pull.Preview.Ending = nil, "" },
			[]string{"Computing", "0123456"}},
		"cancelled": {func(r *forge.Report) { r.Pull.Preview.Ending = intent.DryRunCancelled }, []string{"cancelled"}},
		"failed": {func(r *forge.Report) {
			r.Pull.Preview.Ending, r.Pull.Preview.Reason, r.Errors = intent.DryRunFailed, "the model has "+
				"errors", []string{"main.cf:3: no such type"}
		}, []string{"No preview", "the model has errors", "main.cf:3: no such type"}},
		"merged": {func(r *forge.Report) { r.Pull.State = intent.PullIsMerged }, []string{"merged", "removed"}},
	} {
		r := previewed()
		story.change(&r)
		for _, want := range story.want {
			if !strings.Contains(r.Text(), want) {
				t.Errorf("%s: nothing of %q in\n%s", what, want, r.Text())
			}
		}
	}
}

// A commit that changes only clusters has its plans in the comment, as text that cannot end the block they stand in.
func TestACommentTellsWhatClustersDo(t *testing.T) {
	r := previewed(intent.ResourceDiff{ID: resource("/d"), Kind: intent.DiffUnmodified})
	r.Clusters = []string{
		"shop: change, 2 tasks\n  makes 1: shop-1002.local\n  1. create on 1 node\n",
		"evil: ```\n@all\n",
	}
	text := r.Text()
	for _, want := range []string{"It would change clusters only", "makes 1: shop-1002.local", "````\nshop: change"} {
		if !strings.Contains(text, want) {
			t.Errorf("the comment lacks %q:\n%s", want, text)
		}
	}
}
