package store

// What the tests outside of the package look into.
var (
	CheckStatements = checkStatements
	CheckMigrations = checkMigrations
)
