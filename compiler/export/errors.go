package export

import "fmt"

// FormatError says that a document was written by another version of this program.
type FormatError struct{ Got int }

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("the export document has format %d, and this program reads %d: compile again with the same version as the server", e.Got, DocumentFormat)
}
