package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildCommit builds the program of a commit of this repository, and returns the path of the
// binary, in dir. The files of the checkout are left alone.
func buildCommit(ctx context.Context, dir, commit string) (_ string, err error) {
	tree, binary := filepath.Join(dir, "old-tree"), filepath.Join(dir, "ordain-old")
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	root = strings.TrimSpace(root)
	if !hasCommit(ctx, commit) {
		return "", fmt.Errorf("this repository has no commit %s; fetch the whole history, or choose with -from", commit)
	}
	if _, err := git(ctx, "-C", root, "worktree", "add", "--detach", tree, commit); err != nil {
		return "", err
	}
	defer func() {
		if _, failed := git(context.WithoutCancel(ctx), "-C", root, "worktree", "remove", "--force", tree); err == nil {
			err = failed
		}
	}()
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/ordain")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build of %s: %w\n%s", commit, err, out)
	}
	return binary, nil
}

// hasCommit reports whether the repository of the working directory has a commit.
func hasCommit(ctx context.Context, commit string) bool {
	_, err := git(ctx, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
