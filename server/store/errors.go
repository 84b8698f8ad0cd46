package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ordain.dev/ordain/internal/fault"
)

// conflicts describes, in words, the constraints that a client can violate. That an id is taken is not said: it may be
// that of somebody who must not be known.
var conflicts = map[string]string{
	"project_pkey":                            "this id cannot be used; leave it out to get a new one",
	"project_name_taken":                      "there is a project with this name already",
	"environment_pkey":                        "this id cannot be used; leave it out to get a new one",
	"environment_name_taken":                  "the project has an environment with this name already",
	"compile_one_runs":                        "a compile of this environment runs already",
	"compile_starts_before_it_completes":      "the compile was not started",
	"version_one_is_active":                   "another version was released at the same time",
	"version_released_when_active_or_retired": "the version cannot go into that state",
	"person_name_taken":                       "there is a user with this name already",
	"role_pkey":                               "there is a role with this name already",
	"role_binding_taken":                      "it has this role there already",
	"person_identity_taken":                   "there is a user with this identity already",
	"personal_token_name_taken":               "you have a token with this name already",
	"token_trust_name_taken":                  "the project has a trust with this name already",
	"dryrun_counts_down":                      "the dry run has no more resources to do",
}

// missing describes, in words, the references that a client can get wrong.
var missing = map[string]string{
	"environment_project":      "there is no such project",
	"secret_environment":       "there is no such environment",
	"project_secret_project":   "there is no such project",
	"compile_environment":      "there is no such environment",
	"version_environment":      "there is no such environment",
	"parameter_environment":    "there is no such environment",
	"notification_environment": "there is no such environment",
	"dryrun_environment":       "there is no such environment",
	"fact_request_environment": "there is no such environment",
	"forge_outbox_environment": "there is no such environment",
	"pull_environment":         "there is no such environment",
	"stage_compile":            "there is no such compile",
	"dryrun_version":           "there is no such version",
	"role_binding_person":      "there is no such user",
	"role_binding_project":     "there is no such project",
	"role_binding_environment": "there is no such environment",
	"session_person":           "there is no such user",

	"personal_token_project":        "there is no such project",
	"personal_token_environment":    "there is no such environment",
	"environment_token_environment": "there is no such environment",
	"token_trust_project":           "there is no such project",
	"token_trust_environment":       "there is no such environment",
	"job_token_trust":               "there is no such trust",
	"cluster_entity_project":        "there is no such project",
	"cluster_tenant_project":        "there is no such project",
	"agent_join_token_environment":  "there is no such environment",
	"remote_agent_environment":      "there is no such environment",

	"cluster_resource_project":        "there is no such project",
	"cluster_resource_number_project": "there is no such project",
}

// translate turns an error of pgx into a fault. Values of statements never get into the message.
func translate(op string, err error) error {
	var known *fault.Error
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, pgx.ErrNoRows):
		return fault.New(op, fault.NotFound, "there is no such "+nounOf(op))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(op, fault.Unavailable, err).Say("the call ended before the database answered")
	case errors.As(err, &pg):
		return translateServer(op, pg)
	case connectionLost(err):
		return fault.Wrap(op, fault.Unavailable, err).Say("the database cannot be reached").
			Hint("the server keeps trying")
	}
	return fault.Wrap(op, fault.Internal, err)
}

func translateServer(op string, pg *pgconn.PgError) error {
	// Detail and Where may hold values; the code, the message and the constraint name do not.
	cause := &pgconn.PgError{
		Severity:       pg.Severity,
		Code:           pg.Code,
		Message:        pg.Message,
		ConstraintName: pg.ConstraintName,
	}
	switch class := pg.Code[:min(2, len(pg.Code))]; {
	case pg.Code == "23505", pg.Code == "23514":
		if words, ok := conflicts[pg.ConstraintName]; ok {
			return fault.New(op, fault.Conflict, words)
		}
		if pg.Code == "23505" {
			return fault.Wrap(op, fault.Conflict, cause).Say("it exists already")
		}
		return fault.Wrap(op, fault.Conflict, cause).Say("that state is not allowed here")
	case pg.Code == "23503":
		if words, ok := missing[pg.ConstraintName]; ok {
			return fault.New(op, fault.NotFound, words)
		}
		return fault.Wrap(op, fault.Conflict, cause).Say("something else refers to it, or what it refers to is gone")
	case pg.Code == "53100":
		return fault.Wrap(op, fault.Exhausted, cause).
			Say("the disk of the database is full").
			Hint("free some space; the server then goes on by itself")
	case pg.Code == "53200":
		return fault.Wrap(op, fault.Exhausted, cause).Say("the database is out of memory")
	case class == "57", class == "08", class == "53", class == "40":
		return fault.Wrap(op, fault.Unavailable, cause).Say("the database cannot be reached").
			Hint("the server keeps trying")
	case class == "54": // too large for an index, too deep
		return fault.Wrap(op, fault.Invalid, cause).Say("a value is too large for the database")
	case class == "22":
		return fault.Wrap(op, fault.Invalid, cause).Say("the database does not accept this value")
	case class == "28", class == "3D":
		return fault.Wrap(op, fault.Unauthorized, cause).
			Say("the database refuses the login").
			Hint("check the user, password and name in the address of the database")
	case pg.Code == "42501":
		return fault.Wrap(op, fault.Forbidden, cause).
			Say("the database user may not do that").
			Hint("make it the owner of the database")
	}
	return fault.Wrap(op, fault.Internal, cause)
}

// nounOf returns what an operation is about, for "there is no such …".
func nounOf(op string) string {
	name := strings.ToLower(op[strings.LastIndexByte(op, '.')+1:])
	for _, noun := range []string{"project", "dryrun", "parameter", "version", "stage", "compile", "resource", "file",
		"setting", "environment", "action", "user", "role", "binding", "session", "token",
		"trust", "process"} {
		if strings.Contains(name, noun) {
			if noun == "dryrun" {
				return "dry run"
			}
			return noun
		}
	}
	return "environment"
}

// connectionLost reports whether the connection failed, and not the statement.
func connectionLost(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "57P01", "57P02", "57P03":
			return true
		}
		return strings.HasPrefix(pg.Code, "08")
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool")
}

// lostRace reports whether the transaction was chosen to give way to another.
func lostRace(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
