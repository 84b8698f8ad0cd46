// Package e2e tests the whole server, with real repositories, PostgreSQL, virtual
// environments, compilers and executors. The first comment of each test says which
// failure it is about. The mass of kills is in bench/soak.
package e2e
