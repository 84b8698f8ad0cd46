package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Build builds the binary into dir and returns its path.
func Build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "ordain")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "ordain.dev/ordain/cmd/ordain").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// StartOrdain starts `ordain up` with its private database. All state is below
// dir, so a server that is started there again continues from it; env is added
// to the environment.
func StartOrdain(ctx context.Context, binary, dir, python string, env ...string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Name: "ordain"}
	args := []string{
		"up", "--state-dir", filepath.Join(dir, "state"), "--log-dir", filepath.Join(dir, "log"),
		"--port", strconv.Itoa(port),
	}
	if python != "" {
		args = append(args, "--python", python)
	}
	if err := s.start(dir, append(os.Environ(), env...), binary, args...); err != nil {
		return nil, err
	}
	if err := s.waitReady(ctx, port, "/api/v2/health"); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// StartAgent starts `ordain agent`, which joins with a token when it has not joined yet. It does not wait until it is
// connected.
func StartAgent(binary, dir, token string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &Server{Name: "ordain"}
	err := s.start(dir, append(os.Environ(), "ORDAIN_JOIN_TOKEN="+token), binary, "agent",
		"--state-dir", filepath.Join(dir, "state"), "--isolation", "off")
	return s, err
}

// StartRoles starts `ordain serve` with some roles. Processes with the same database and key file share the work; each
// has a dir of its own.
func StartRoles(ctx context.Context, binary, dir, roles, database, key string, env ...string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &Server{Name: "ordain"}
	// The database's address may hold a password, which does not belong into arguments.
	env = append(append(os.Environ(), "ORDAIN_DATABASE_URL="+database), env...)
	if err := s.start(dir, env, binary, "serve", "--roles", roles, "--secret-key-file", key,
		"--state-dir", filepath.Join(dir, "state"), "--log-dir", filepath.Join(dir, "log"),
		"--port", strconv.Itoa(port)); err != nil {
		return nil, err
	}
	if err := s.waitReady(ctx, port, "/readyz"); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}
