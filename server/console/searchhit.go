package console

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// hitOf shows something that the store found.
func hitOf(in store.FoundIn, f store.Found) hit {
	h := hit{At: f.At, exact: f.Exact}
	var notes []string
	note := func(text string) {
		if text != "" {
			notes = append(notes, text)
		}
	}
	switch in {
	case store.FoundRun:
		s := foundStates[f.State]
		id, _ := uuid.Parse(f.Key) // it is the key of the table
		h.URL, h.State, h.Commit, h.Text = runURL(f.Environment, id), &s, short(f.Commit), cmp.Or(f.Title, "Run")
		note(by(f.By))
		if f.Words != f.Title {
			note(f.Words)
		}
		if f.Number > 0 {
			note("version " + strconv.Itoa(f.Number))
		}
		if f.Gone {
			note("preview")
		}
	case store.FoundVersion:
		s := versionState(intent.Version{Status: intent.VersionStatus(f.State)})
		h.URL, h.State, h.Commit = versionURL(f.Environment, f.Number), &s, short(f.Commit)
		h.Text = "Version " + strconv.Itoa(f.Number)
		note(f.Title)
		note(by(f.By))
		if f.Words != "" {
			note("rolled back: “" + f.Words + "”")
		}
		if f.Gone {
			note("preview")
		}
	case store.FoundWords:
		h.Text, h.URL = "“"+f.Words+"”", envURL(f.Environment)+didAt(f)
		if f.Words == "" {
			h.Text = didWhat(f)
		} else {
			note(didWhat(f))
		}
	case store.FoundPull:
		h.URL, h.Text = pullURL(f.Environment, f.Number), "#"+strconv.Itoa(f.Number)+" "+f.Title
		h.Commit = short(f.Commit)
		note(by(f.By))
		note(f.State)
	case store.FoundCluster:
		h.URL, h.Text = clusterURL(f.Environment, f.Key), f.Title
		note(f.State)
		note(f.Words)
	case store.FoundResource:
		s := stateOf(intent.Status(f.State))
		h.Text, h.Mono, h.State = f.Key, true, &s
		h.URL = envURL(f.Environment) + "/resources"
		if id, err := intent.ParseResourceID(f.Key); err == nil {
			h.URL = resourceURL(f.Environment, id)
		}
		h.At = nil
	}
	h.Note = strings.Join(notes, " · ")
	return h
}

func by(name string) string {
	if name == "" {
		return ""
	}
	return "by " + name
}

var foundStates = map[string]state{
	"waiting": waiting, "running": running, "cancelled": cancelled, "succeeded": succeeded, "failed": failed,
}

// didWhat says who did what.
func didWhat(f store.Found) string {
	what, ok := map[intent.InterventionKind]string{
		intent.DidHalt: "halted the environment", intent.DidResume: "resumed the environment",
		intent.DidPause:    "paused " + cmp.Or(f.Title, "all agents"),
		intent.DidUnpause:  "unpaused " + cmp.Or(f.Title, "all agents"),
		intent.DidOverride: "let changes through", intent.DidEndOverride: "ended letting changes through",
		intent.DidAccept: "accepted a commit", intent.DidUnblock: "unblocked a commit",
		intent.DidRollBack: "rolled back", intent.DidApprove: "approved", intent.DidPromote: "promoted",
		intent.DidPauseFollow: "paused promotions", intent.DidFollowAgain: "resumed promotions",
	}[intent.InterventionKind(f.State)]
	if !ok {
		what = f.State
	}
	return f.By + " " + what
}

// didAt returns the page, below that of the environment, on which what somebody did can be seen.
func didAt(f store.Found) string {
	switch intent.InterventionKind(f.State) {
	case intent.DidPause, intent.DidUnpause:
		return "/agents"
	case intent.DidHalt, intent.DidResume, intent.DidOverride, intent.DidEndOverride:
		return ""
	}
	return "/git"
}
