package intent

import (
	"fmt"
	"strings"
	"time"
)

// Standing says what is deployed in an environment, what the tip of its branch is, and why the two differ. Every page,
// call and command takes its answer from here, so that no two of them disagree:
//
//	the record ──StandingFacts──▶ Decide ──Standing──▶ pages, API, command line
//
// Dry runs and previews never count: they say nothing about the branch.
type Standing struct {
	Environment EnvironmentID
	Deployed    *Deployed // nil: nothing is deployed yet
	Tip         *Tip      // nil: no commit has been seen yet
	// Halted is who halted the environment; nil: it is not halted.
	Halted *Actor
	// Why lists the reasons why what is deployed is not the tip of the branch, the most important one first. It is empty
	// when both are the same.
	Why []Difference
}

// Deployed is the version that is the intent.
type Deployed struct {
	Version  int
	Commit   string // empty: it did not come from a commit
	Subject  string
	Author   string
	Released time.Time
	Compile  CompileID
	// RolledBack is set if a person rolled back to this commit.
	RolledBack *RollBack
	// Pushed is set if the version was stored by a client and did not come from a commit.
	Pushed bool
}

// Tip is the newest commit of the branch that the server has seen.
type Tip struct {
	Commit  string
	Subject string
	Author  string
	Seen    time.Time
	Compile CompileID // the newest run of it; zero: none has begun
}

// DifferenceKind says, in one word for programs, why what is deployed is not the tip of the branch.
type DifferenceKind string

// Kinds of differences.
const (
	StandsSame         DifferenceKind = "same"           // what is deployed is the tip; no Difference has this kind
	StandsNothing      DifferenceKind = "nothing"        // no commit has been seen, and nothing is deployed
	StandsHalted       DifferenceKind = "halted"         // nothing is compiled until a person resumes it
	StandsCompiling    DifferenceKind = "compiling"      // a run is under way
	StandsWaiting      DifferenceKind = "waiting"        // a run waits to begin
	StandsUnreadable   DifferenceKind = "unreadable"     // the repository cannot be read
	StandsFailed       DifferenceKind = "failed"         // the last run failed
	StandsCancelled    DifferenceKind = "cancelled"      // a person cancelled the last run
	StandsUnsigned     DifferenceKind = "unsigned"       // the tip was refused: no allowed signature
	StandsRewritten    DifferenceKind = "rewritten"      // the tip was refused: it rewrites history
	StandsProtected    DifferenceKind = "protected"      // the tip was refused: not of a protected ref
	StandsBlocked      DifferenceKind = "blocked"        // a person blocked the tip
	StandsRolledBack   DifferenceKind = "rolled_back"    // a person rolled back
	StandsHeld         DifferenceKind = "held"           // a version waits for a person's confirmation
	StandsUnreleased   DifferenceKind = "unreleased"     // a version waits to be released by hand
	StandsPromotion    DifferenceKind = "promotion"      // a commit waits for the gates of its promotion
	StandsWindow       DifferenceKind = "window"         // it is the intent, and changes wait for a window
	StandsQuota        DifferenceKind = "quota"          // the project has used up a quota
	StandsNotCommitted DifferenceKind = "not_committed"  // a version that did not come from a commit was stored
	StandsOther        DifferenceKind = "other_released" // another version was released after the one of the tip
)

// Difference is one reason why what is deployed is not the tip of the branch.
type Difference struct {
	Kind DifferenceKind
	Text string // a sentence for people
	// Advice says what to do; empty: nothing, or what Text says.
	Advice  string
	Commit  string     // that it is about
	Run     *CompileID // nil: none
	Stage   string     // of the run, while it runs
	Version int        // that it is about; 0: none
	By      *Actor     // the person who caused it; nil: nobody did
	Waits   string     // what the run waits for
	Until   time.Time  // when it ends by itself; zero: not by itself
}

// Kind returns the most important reason.
func (s Standing) Kind() DifferenceKind {
	switch {
	case len(s.Why) > 0:
		return s.Why[0].Kind
	case s.Deployed == nil:
		return StandsNothing
	}
	return StandsSame
}

// Find returns the difference of a kind; nil when there is none.
func (s Standing) Find(kinds ...DifferenceKind) *Difference {
	for i := range s.Why {
		for _, kind := range kinds {
			if s.Why[i].Kind == kind {
				return &s.Why[i]
			}
		}
	}
	return nil
}

// Sentence says in one or two sentences how things stand.
func (s Standing) Sentence() string {
	var b strings.Builder
	switch d := s.Deployed; {
	case d == nil:
		b.WriteString("Nothing is deployed yet.")
	case d.Commit == "":
		fmt.Fprintf(&b, "Version %d is deployed, which is not from a commit.", d.Version)
	default:
		fmt.Fprintf(&b, "Version %d from %s is deployed", d.Version, Revision{Commit: d.Commit}.Short())
		if s.Kind() == StandsSame {
			b.WriteString(", the newest commit")
		}
		b.WriteString(".")
	}
	for _, w := range s.Why {
		b.WriteString(" " + w.Text + ".")
	}
	return b.String()
}

// LastRun is what a standing is told of a run.
type LastRun struct {
	ID        CompileID
	Revision  Revision // its Commit is empty if it chose none
	Trigger   string   // its type
	Requested time.Time
	Started   *time.Time
	Completed *time.Time
	Success   bool
	Version   int
	Stage     string // the stage that runs
	Cancelled *Actor
	Problem   string // why it failed, in one line; empty: not known
}

// StandingFacts is what a standing is decided from: rows of the record at one moment.
type StandingFacts struct {
	Environment Environment
	Active      *Version
	Git         *GitState
	// Tip is the newest run that chose a commit, and Seen when that commit was first seen.
	Tip  *LastRun
	Seen time.Time
	// Last is the newest run that ended. Runs that were cancelled for a newer commit do not count.
	Last *LastRun
	// Running is the run that is under way, Waiting the oldest that waits.
	Running, Waiting *LastRun
	// Newer is the newest version after the active one that is not released, if there is any.
	Newer *Version
	// Blocks are the blocks of commits that last.
	Blocks []Block
	// Promotion waits for its gates.
	Promotion *Promotion
	// Waits says for what Waiting waits, if the caller knows.
	Waits *Wait
	// Window is why changes of the active version wait, and until when; empty: none wait.
	Window      string
	WindowUntil time.Time
}

// Wait says for what a request to compile waits.
type Wait struct {
	Kind WaitKind
	Text string     // what it waits for, such as "the run before it"
	Run  *CompileID // that it waits for; nil: none in particular
}

// WaitKind is what a request to compile waits for.
type WaitKind string

// Kinds of waits.
const (
	WaitsHalted WaitKind = "halted" // the environment is halted
	WaitsRun    WaitKind = "run"    // another run of the environment
	WaitsPlace  WaitKind = "place"  // the server runs as many compiles as it may
	WaitsQuota  WaitKind = "quota"  // the project runs as many compiles as it may
	WaitsServer WaitKind = "server" // no server process takes compiles of the environment now
	WaitsStart  WaitKind = "start"  // nothing: it is about to start
)

// Decide returns the standing that follows from the facts.
func (f StandingFacts) Decide() Standing {
	s := Standing{Environment: f.Environment.ID, Deployed: f.deployed(), Tip: f.tip()}
	if f.Environment.Halted {
		s.Halted = &Actor{By: f.Environment.HaltedBy}
		if at := f.Environment.HaltedAt; at != nil {
			s.Halted.At = *at
		}
	}
	same := s.Deployed != nil && s.Tip != nil && s.Deployed.Commit == s.Tip.Commit
	add := func(d *Difference) {
		if d != nil {
			s.Why = append(s.Why, *d)
		}
	}
	add(f.compiling())
	add(f.unreadable())
	add(f.ended(same))
	add(f.refused(same))
	add(f.rolledBack())
	add(f.blocked(s.Why, same))
	add(f.unreleased())
	add(f.promotion(same))
	add(f.waiting())
	if len(s.Why) == 0 && !same {
		add(f.otherwise(s))
	}
	add(f.window())
	if s.Halted != nil && len(s.Why) > 0 || s.Halted != nil && s.Deployed == nil {
		// It comes first, because nothing else moves before it ends.
		s.Why = append([]Difference{f.halted()}, s.Why...)
	}
	return s
}

func (f StandingFacts) deployed() *Deployed {
	if f.Active == nil {
		return nil
	}
	p := f.Active.Provenance
	d := &Deployed{
		Version: f.Active.Number, Commit: p.Commit, Subject: p.Subject, Author: p.Author, Compile: p.Compile,
		RolledBack: p.RolledBack, Pushed: p.Commit == "",
	}
	if f.Active.Released != nil {
		d.Released = *f.Active.Released
	}
	return d
}

func (f StandingFacts) tip() *Tip {
	if p := f.Promotion; p != nil {
		return &Tip{Commit: p.Commit, Subject: p.Subject, Author: p.Author, Seen: p.Created}
	}
	if f.Tip == nil {
		return nil
	}
	r := f.Tip.Revision
	return &Tip{Commit: r.Commit, Subject: r.Subject, Author: r.Author, Seen: f.Seen, Compile: f.Tip.ID}
}

func (f StandingFacts) halted() Difference {
	by := Actor{By: f.Environment.HaltedBy}
	d := Difference{Kind: StandsHalted, By: &by, Text: "The environment is halted: nothing is compiled or deployed"}
	if at := f.Environment.HaltedAt; at != nil {
		by.At = *at
	}
	if by.By != "" {
		d.Text = by.By + " halted the environment: nothing is compiled or deployed until it is resumed"
	}
	return d
}

func (f StandingFacts) compiling() *Difference {
	r := f.Running
	if r == nil {
		return nil
	}
	d := &Difference{Kind: StandsCompiling, Run: &r.ID, Stage: r.Stage, Commit: r.Revision.Commit}
	what := "A run"
	if r.Revision.Commit != "" {
		what = r.Revision.Short()
	}
	d.Text = what + " is being compiled"
	if r.Stage != "" {
		d.Text += " (" + strings.ToLower(r.Stage[:1]) + r.Stage[1:] + ")"
	}
	if by := r.Cancelled; by != nil {
		d.By, d.Text = by, what+" is being cancelled by "+by.By
	}
	return d
}

func (f StandingFacts) waiting() *Difference {
	r := f.Waiting
	if r == nil {
		return nil
	}
	d := &Difference{Kind: StandsWaiting, Run: &r.ID, Text: "A compile waits to start"}
	if f.Waits != nil && f.Waits.Kind != WaitsStart {
		d.Text, d.Waits = "A compile waits for "+f.Waits.Text, f.Waits.Text
	}
	if f.Waits != nil && f.Waits.Kind == WaitsQuota {
		d.Kind = StandsQuota
	}
	return d
}

func (f StandingFacts) unreadable() *Difference {
	if f.Git == nil || f.Git.Kind != GitFailing {
		return nil
	}
	return &Difference{
		Kind: StandsUnreadable, Advice: f.Git.Advice,
		Text: "The repository cannot be read: " + strings.TrimRight(f.Git.Message, "."),
	}
}

// ended returns what is wrong with the newest run that ended.
func (f StandingFacts) ended(same bool) *Difference {
	r := f.Last
	if r == nil || r.Success {
		return nil
	}
	commit := r.Revision.Commit
	if f.Tip != nil && commit != "" && commit != f.Tip.Revision.Commit {
		return nil // a newer commit is on its way
	}
	if f.Git != nil && (f.Git.Kind == GitFailing && commit == "" || f.Git.Kind.Refused() && f.Git.Commit == commit) {
		return nil // the state of the repository says why
	}
	what := "the last run"
	if commit != "" {
		what = r.Revision.Short()
	}
	stays := ""
	if f.Active != nil {
		stays = fmt.Sprintf(", so version %d stays the intent", f.Active.Number)
	}
	switch {
	case r.Cancelled != nil && (same || commit == "" && !moved(r.Trigger)):
		return nil // nothing is missing for it
	case r.Cancelled != nil:
		text := r.Cancelled.By + " cancelled the compile of " + what
		if r.Cancelled.Reason != "" {
			text += ": “" + r.Cancelled.Reason + "”"
		}
		return &Difference{Kind: StandsCancelled, Text: text, Run: &r.ID, Commit: commit, By: r.Cancelled}
	case commit == "":
		what = "before it chose a commit" + stays
	case same:
		what = "on " + what + ", which an earlier run deployed"
	default:
		what = "on " + what + stays
	}
	d := &Difference{Kind: StandsFailed, Text: "The last run failed " + what, Run: &r.ID, Commit: commit}
	if r.Problem != "" {
		d.Text += ": " + strings.TrimRight(r.Problem, ".")
	}
	return d
}

// moved reports whether a trigger says that there is a new commit.
func moved(trigger string) bool {
	switch trigger {
	case "webhook", "poll", "watch", TriggerPromotion:
		return true
	}
	return false
}

// block returns the block of a commit; nil when it is not blocked.
func (f StandingFacts) block(commit string) *Block {
	for i := range f.Blocks {
		if commit != "" && f.Blocks[i].Commit == commit {
			return &f.Blocks[i]
		}
	}
	return nil
}

// refusals are the kinds of a commit that the policy of the environment rejects.
var refusals = map[GitKind]DifferenceKind{
	GitUnsigned: StandsUnsigned, GitRewritten: StandsRewritten, GitProtected: StandsProtected,
}

func (f StandingFacts) refused(same bool) *Difference {
	if f.Git == nil || same {
		return nil
	}
	kind, refused := refusals[f.Git.Kind]
	if !refused {
		return nil
	}
	d := &Difference{
		Kind: kind, Commit: f.Git.Commit, Advice: f.Git.Advice,
		Text: Revision{Commit: f.Git.Commit}.Short() + " was refused: " + strings.TrimRight(f.Git.Message, "."),
	}
	if f.Last != nil && f.Last.Revision.Commit == f.Git.Commit {
		d.Run = &f.Last.ID
	}
	return d
}

func (f StandingFacts) rolledBack() *Difference {
	if f.Active == nil || f.Active.Provenance.RolledBack == nil {
		return nil
	}
	b := f.Active.Provenance.RolledBack
	d := &Difference{
		Kind: StandsRolledBack, Commit: b.Blocked, Version: f.Active.Number,
		By:   &Actor{By: b.By, Reason: b.Reason, At: b.At},
		Text: fmt.Sprintf("%s rolled back from version %d to %d: “%s”", b.By, b.From, b.To, b.Reason),
	}
	if f.block(b.Blocked) != nil {
		d.Text += "; " + Revision{Commit: b.Blocked}.Short() + " is blocked"
		d.Advice = "push a fix: a newer commit is deployed as usual; or unblock " + Revision{Commit: b.Blocked}.Short()
	}
	return d
}

// blocked returns the block of the tip, unless the rollback that made it says so already.
func (f StandingFacts) blocked(said []Difference, same bool) *Difference {
	if f.Tip == nil || same {
		return nil
	}
	b := f.block(f.Tip.Revision.Commit)
	if b == nil {
		return nil
	}
	for _, d := range said {
		if d.Kind == StandsRolledBack && d.Commit == b.Commit {
			return nil
		}
	}
	short := Revision{Commit: b.Commit}.Short()
	return &Difference{
		Kind: StandsBlocked, Commit: b.Commit, By: &Actor{By: b.By, Reason: b.Reason, At: b.At},
		Text:   fmt.Sprintf("%s blocked %s: “%s”", b.By, short, b.Reason),
		Advice: "push a fix: a newer commit is deployed as usual; or unblock " + short,
	}
}

func (f StandingFacts) unreleased() *Difference {
	v := f.Newer
	if v == nil {
		return nil
	}
	d := &Difference{Kind: StandsUnreleased, Version: v.Number, Commit: v.Provenance.Commit}
	if v.Provenance.Compile != (CompileID{}) {
		d.Run = &v.Provenance.Compile
	}
	d.Text = fmt.Sprintf("Version %d waits to be released", v.Number)
	if v.Hold != nil {
		d.Kind = StandsHeld
		d.Text = fmt.Sprintf("Version %d waits for a person: %s", v.Number, strings.TrimRight(v.Hold.Text, "."))
	}
	return d
}

func (f StandingFacts) promotion(same bool) *Difference {
	p := f.Promotion
	if p == nil || same {
		return nil
	}
	d := &Difference{Kind: StandsPromotion, Commit: p.Commit, Text: p.Short() + " of " + p.SourceName + " waits to be promoted"}
	for i, gate := range p.Held() {
		sep := ": "
		if i > 0 {
			sep = ", "
		}
		d.Text += sep + gate.Text
		if d.Until.Before(gate.Until) {
			d.Until = gate.Until
		}
	}
	return d
}

// otherwise says why the tip is not deployed when nothing else does.
func (f StandingFacts) otherwise(s Standing) *Difference {
	switch {
	case s.Deployed == nil:
		return nil
	case s.Deployed.Commit == "" && s.Tip != nil:
		return &Difference{
			Kind: StandsNotCommitted, Version: s.Deployed.Version, Commit: s.Tip.Commit,
			Text: fmt.Sprintf("Version %d did not come from a commit; the newest commit is %s", s.Deployed.Version,
				Revision{Commit: s.Tip.Commit}.Short()),
		}
	case s.Tip != nil:
		return &Difference{
			Kind: StandsOther, Version: s.Deployed.Version, Commit: s.Tip.Commit, Run: &f.Tip.ID,
			Text: fmt.Sprintf("The newest commit is %s, and a version of another commit was released",
				Revision{Commit: s.Tip.Commit}.Short()),
		}
	}
	return nil
}

func (f StandingFacts) window() *Difference {
	if f.Window == "" || f.Active == nil {
		return nil
	}
	return &Difference{
		Kind: StandsWindow, Version: f.Active.Number, Until: f.WindowUntil,
		Text: fmt.Sprintf("Changes of version %d wait: %s", f.Active.Number, f.Window),
	}
}
