package console

// gitCommitGroup is a commit with its runs, the newest first. The row itself is what became of the commit.
type gitCommitGroup struct {
	gitCommitRow
	Runs []gitCommitRow // empty: there is one, which the row shows
}

// groupCommits puts the runs of each commit into one row, in the order of the newest runs.
func groupCommits(runs []gitCommitRow) (out []gitCommitGroup) {
	at := map[string]int{}
	for _, run := range runs {
		i, known := at[run.Full]
		switch {
		case known:
			out[i].Runs = append(out[i].Runs, run)
		case len(out) < shownCommits:
			at[run.Full] = len(out)
			out = append(out, gitCommitGroup{gitCommitRow: run, Runs: []gitCommitRow{run}})
		}
	}
	for i := range out {
		out[i].settle()
	}
	return out
}

// settle chooses what the row of a commit says: what is active of it, or was rolled back, else its newest run. Where
// that made no version, the newest version that the commit ever had is named.
func (g *gitCommitGroup) settle() {
	if len(g.Runs) == 1 {
		g.Runs = nil
		return
	}
	weight := func(s state) int {
		switch s {
		case active:
			return 2
		case rolledBack:
			return 1
		}
		return 0
	}
	chosen := g.Runs[0]
	for _, run := range g.Runs {
		if weight(run.State) > weight(chosen.State) {
			chosen = run
		}
	}
	for _, run := range g.Runs {
		if chosen.Version == 0 {
			chosen.Version, chosen.VersionURL = run.Version, run.VersionURL
		}
	}
	// When it was compiled last is what the list is sorted by.
	chosen.When, chosen.RunURL = g.Runs[0].When, g.Runs[0].RunURL
	g.gitCommitRow = chosen
}
