package cli

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// originOf says where a version of `ordain deploy` comes from: the folder, the person, and the commit that is checked
// out, if there is one.
func originOf(ctx context.Context, project string) intent.FolderOrigin {
	from := intent.FolderOrigin{Path: project, User: os.Getenv("USER")}
	if u, err := user.Current(); err == nil {
		from.User = u.Username
	}
	from.Host, _ = os.Hostname()
	commit, err := askGit(ctx, project, "rev-parse", "--verify", "--quiet", "HEAD")
	if err != nil {
		return from
	}
	from.Commit = commit
	if changes, err := askGit(ctx, project, "status", "--porcelain", "--", "."); err == nil {
		dirty := changes != ""
		from.Dirty = &dirty
	}
	return from
}

// askGit runs a command of Git that changes nothing, not even the index, and no program that the repository names.
func askGit(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false"},
		args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
