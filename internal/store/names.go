package store

// statementTexts names every statement of sql/*.sql.
type statementTexts struct {
	// migration.sql
	Ping, ServerVersion, MigrationLock, MigrationTable, MigrationList, MigrationDone string
	// own.sql
	OwnTry, OwnRelease, OwnedElsewhere string
}
