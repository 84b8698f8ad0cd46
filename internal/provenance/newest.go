package provenance

// Newest returns the line that was committed last among those that a value comes from:
// most often the one that changed it. The commit is nil when none is known.
func Newest(f Field) (Place, *Commit) {
	var n newest
	n.field(f)
	return n.at, n.commit
}

type newest struct {
	at     Place
	commit *Commit
}

func (n *newest) field(f Field) {
	for _, s := range f.Settings {
		n.line(s.Place, s.Commit)
		for _, step := range s.Steps {
			n.line(step.Made, step.MadeCommit)
			n.line(step.Selected, step.Commit)
		}
		for _, input := range s.Inputs {
			n.field(input)
		}
	}
}

func (n *newest) line(at Place, c *Commit) {
	if c == nil || n.commit != nil && !c.Date.After(n.commit.Date) {
		return
	}
	n.at, n.commit = at, c
}
