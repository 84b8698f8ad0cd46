package intent

import "time"

// Standing says what is deployed in an environment, what the tip of its branch is, and why the two differ. Every page,
// call and command takes its answer from here, so that no two of them disagree:
//
//	the record ──StandingFacts──▶ server/standing decides ──Standing──▶ pages, API, command line
//
// Dry runs and previews never count: they say nothing about the branch.
type Standing struct {
	Environment EnvironmentID
	Deployed    *Deployed // nil: nothing is deployed yet
	Tip         *Tip      // nil: no commit has been seen yet
	// Halted is who halted the environment; nil: it is not halted.
	Halted *Actor
	// Why lists the reasons why what is deployed is not the tip of the branch, the most important one first. It is
	// empty when both are the same.
	Why []Difference
	// Text says all of it in a few sentences.
	Text string
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

// LastRun has the facts of a run that a standing depends on.
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
