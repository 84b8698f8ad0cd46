package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/build"
)

// prepare is the first stage: it makes the folders, and empties them on request.
func (c *compilation) prepare(ctx context.Context) error {
	return c.stage(ctx, intent.StageInit, func(out build.Output) (string, error) {
		asked := c.compile.Trigger.Type
		if m := c.compile.Trigger.Message; m != "" {
			asked += ": " + m
		}
		out("Asked for by "+asked+"\n", "")
		if err := c.Folders.Prepare(c.e); err != nil {
			return "", err
		}
		if c.compile.Reinstall {
			out("Removing checkout and virtual environment, as asked\n", "")
			if err := c.Folders.resetCompiler(c.env); err != nil {
				return "", err
			}
			c.disk.forget(c.env)
		}
		return "", c.CheckDisk(ctx, c.e)
	})
}

// fetch fetches the source and chooses the commit. A compile that starts over after the
// server was killed keeps the commit that it chose before, if this process has it.
func (c *compilation) fetch(ctx context.Context) error {
	c.fetching = true
	if err := c.findSource(ctx); err != nil {
		return c.stage(ctx, intent.StageFetch, func(build.Output) (string, error) {
			c.sameFailure = c.recordGitFailure(ctx, err)
			return "", err
		})
	}
	if !c.cfg.Git.Has(c.source, "") {
		return c.stage(ctx, intent.StageClone, c.fetchSource(ctx))
	}
	if c.compile.Revision != nil && c.cfg.Git.Has(c.source, c.compile.Revision.Commit) {
		return nil
	}
	if !c.compile.Update {
		last, err := c.cfg.Store.LastCompile(ctx, c.env)
		if err != nil {
			return err
		}
		if last != nil && last.Revision != nil && c.follows(*last.Revision) &&
			c.cfg.Git.Has(c.source, last.Revision.Commit) {
			return c.choose(ctx, *last.Revision)
		}
	}
	return c.stage(ctx, intent.StageFetch, c.fetchSource(ctx))
}

// findSource decides what to fetch: the environment's branch, or the commit that was
// promoted to it.
func (c *compilation) findSource(ctx context.Context) error {
	return c.patiently(ctx, "find out what to fetch", func() (err error) {
		if c.promoted, err = c.PromotedCommit(ctx, c.e); err != nil {
			return err
		}
		if c.promoted != nil {
			c.e.Source.Branch = c.promoted.Follows
		}
		if c.source, err = c.cfg.Sources.Of(ctx, c.e); err != nil {
			return err
		}
		c.job.Source = c.source
		if c.promoted != nil {
			c.source.Branch = c.promoted.Commit
		}
		return nil
	})
}

// follows reports whether a commit that was compiled before is the one to
// compile when nothing is fetched.
func (c *compilation) follows(rev intent.Revision) bool {
	if c.promoted != nil {
		return rev.Commit == c.promoted.Commit
	}
	return c.e.Source.Branch == "" || rev.Branch == c.e.Source.Branch
}

func (c *compilation) fetchSource(ctx context.Context) func(build.Output) (string, error) {
	return func(out build.Output) (string, error) {
		var rev intent.Revision
		var report gitsync.Report
		var err error
		c.turn.during(ctx, func() { rev, report, err = c.cfg.Git.Fetch(ctx, c.source) })
		print(out, report.Output)
		if err != nil {
			c.sameFailure = c.recordGitFailure(ctx, err)
			return report.Command, err
		}
		c.unreadableSince = c.recordReadable(ctx)
		if p := c.promoted; p != nil {
			if rev.Commit != p.Commit { // such as a branch that is named like the commit
				return report.Command, fault.New("keeper.fetch", fault.Conflict,
					fmt.Sprintf("the repository resolves the commit %s to %s", p.Commit, rev.Commit)).
					Hint("remove the branch or tag of that name from the repository")
			}
			rev.Branch = p.Branch
			out(p.Why+"\n", "")
		}
		out(fmt.Sprintf("%s is at %s %q by %s\n",
			cmp.Or(c.source.Branch, rev.Branch), rev.Short(), rev.Subject, rev.Author), "")
		if c.repeats(ctx, rev.Commit) {
			out("This commit is compiled already: nothing to do\n", "")
			return report.Command, errors.Join(c.choose(ctx, rev), errUpToDate)
		}
		return report.Command, c.choose(ctx, rev)
	}
}

// choose records the commit that will be compiled.
func (c *compilation) choose(ctx context.Context, rev intent.Revision) error {
	c.compile.Revision = &rev
	c.job.Compile = c.compile
	return c.patiently(ctx, "record the commit", func() error {
		return c.cfg.Store.SetCompileRevision(ctx, c.compile.ID, rev)
	})
}

func (c *compilation) checkout(ctx context.Context) error {
	return c.stage(ctx, intent.StageCheckout, func(out build.Output) (string, error) {
		report, err := c.cfg.Git.Checkout(ctx, c.source, c.compile.Revision.Commit, c.job.Dir)
		print(out, report.Output)
		return report.Command, err
	})
}

// print writes what Git printed, if it printed anything.
func print(out build.Output, text string) {
	if text != "" {
		out(text, "")
	}
}
