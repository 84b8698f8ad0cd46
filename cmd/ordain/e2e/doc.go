// Package e2e holds the scenarios that cross the whole server: real
// repositories, PostgreSQL, virtual environments, compilers and executors.
// Each test tells the story of one push, or of one failure that we fear.
package e2e
