package control

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"time"
	"unicode/utf8"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

const (
	// readTime is how long reading a file may take.
	readTime = 10 * time.Second
	// maxSourceFile is how many bytes of a file are returned.
	maxSourceFile = 512 << 10
)

// sourceTypes are the files in which Ordain names lines: the model, its plug-ins and its templates. Others, which may
// hold anything, are left to those who can read the repository.
var sourceTypes = []string{".cf", ".py", ".j2", ".tmpl"}

// SourceFile returns the text of a file of the model, as a commit has it that the environment compiled. The path
// begins at the top of the repository.
func (c *Control) SourceFile(ctx context.Context, env intent.EnvironmentID, commit, file string) (string, error) {
	const op = "control.SourceFile"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return "", err
	}
	if !slices.Contains(sourceTypes, path.Ext(file)) {
		return "", fault.New(op, fault.NotFound, "only files of the model are shown: .cf, .py, .j2 and .tmpl").
			Hint("look at other files in the repository itself")
	}
	used, err := c.compiled(ctx, env, commit)
	if err != nil {
		return "", err
	}
	if !used || c.cfg.Remotes == nil {
		return "", fault.New(op, fault.NotFound, "this environment has not compiled the commit").
			Hint("open a commit from the page of a run, a version or a resource")
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	f, err := c.cfg.Remotes.Read(ctx, source.Plain(e), commit, file)
	switch {
	case err != nil:
		return "", err
	case len(f.Content) > maxSourceFile:
		return "", fault.New(op, fault.Conflict, fmt.Sprintf("the file has %d KiB, and at most %d are shown",
			len(f.Content)>>10, maxSourceFile>>10)).Hint("look at it in the repository itself")
	case !utf8.Valid(f.Content) || bytes.IndexByte(f.Content, 0) >= 0:
		return "", fault.New(op, fault.Conflict, "the file is not text").Hint("look at it in the repository itself")
	}
	return string(f.Content), nil
}

// compiled reports whether an environment compiled a commit of its own branch; previews of other people's do not count.
func (c *Control) compiled(ctx context.Context, env intent.EnvironmentID, commit string) (bool, error) {
	if len(commit) != 40 {
		return false, nil
	}
	for _, in := range []store.FoundIn{store.FoundVersion, store.FoundRun} {
		found, err := c.cfg.Store.Search(ctx, store.Search{
			In: in, Environments: []intent.EnvironmentID{env}, Text: commit, Limit: 100,
		})
		if err != nil {
			return false, err
		}
		for _, f := range found {
			if f.Exact && !f.Gone && f.Commit == commit {
				return true, nil
			}
		}
	}
	return false, nil
}
