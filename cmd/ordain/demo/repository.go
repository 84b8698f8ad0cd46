package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

//go:embed all:sample
var sample embed.FS

// repository is a bare repository, which stands for a forge, and the working copy of
// a person who pushes to it.
type repository struct {
	bare, work string
}

// newRepository makes a bare repository whose post-receive hook runs notify, and a
// working copy with the sample project, which deploys its site to root.
func newRepository(ctx context.Context, dir, root string, notify []string) (*repository, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fault.Wrap("demo.newRepository", fault.Unavailable, err).
			Say("the demo pushes with the git program, which is not on this machine").Hint("install git")
	}
	r := &repository{bare: filepath.Join(dir, "bakery.git"), work: filepath.Join(dir, "bakery")}
	if err := r.git(ctx, dir, "init", "--quiet", "--bare", "--initial-branch=main", r.bare); err != nil {
		return nil, err
	}
	hook := "#!/bin/sh\nexec"
	for _, word := range notify {
		hook += " '" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	if err := os.WriteFile(filepath.Join(r.bare, "hooks", "post-receive"), []byte(hook+"\n"), 0o755); err != nil {
		return nil, err
	}
	if err := r.unpack(root); err != nil {
		return nil, err
	}
	if err := r.git(ctx, r.work, "init", "--quiet", "--initial-branch=main"); err != nil {
		return nil, err
	}
	return r, r.git(ctx, r.work, "remote", "add", "origin", "file://"+r.bare)
}

// unpack writes the sample project into the working copy.
func (r *repository) unpack(root string) error {
	return fs.WalkDir(sample, "sample", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(r.work, filepath.FromSlash(strings.TrimPrefix(path, "sample")))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := sample.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, []byte(strings.ReplaceAll(string(text), "@ROOT@", root)), 0o644)
	})
}

// edit replaces a piece of text in the model.
func (r *repository) edit(from, to string) error {
	path := filepath.Join(r.work, "main.cf")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed := strings.Replace(string(text), from, to, 1)
	if changed == string(text) {
		return fmt.Errorf("the model has no %q", from)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}

// push commits everything and pushes it.
func (r *repository) push(ctx context.Context, message string) error {
	if err := r.git(ctx, r.work, "add", "--all"); err != nil {
		return err
	}
	if err := r.git(ctx, r.work, "commit", "--quiet", "--message", message); err != nil {
		return err
	}
	return r.git(ctx, r.work, "push", "--quiet", "origin", "main")
}

// git runs git with the demo's own identity and without the user's configuration.
func (r *repository) git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=Ada Baker", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada Baker", "GIT_COMMITTER_EMAIL=ada@example.org")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fault.Wrap("demo.git", fault.Internal, err).Say("git " + args[0] + ": " + strings.TrimSpace(string(out)))
	}
	return nil
}
