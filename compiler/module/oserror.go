package module

import (
	"errors"
	"fmt"
	"syscall"

	"ordain.dev/ordain/internal/python/pytext"
)

// pythonError is the exception of Python for an error of the operating system.
type pythonError struct{ kind, text string }

var pythonErrors = map[syscall.Errno]pythonError{
	syscall.ENOENT:       {KindNoFile, "No such file or directory"},
	syscall.EISDIR:       {KindDirectory, "Is a directory"},
	syscall.ENOTDIR:      {KindNoDirectory, "Not a directory"},
	syscall.EACCES:       {KindForbidden, "Permission denied"},
	syscall.EPERM:        {KindForbidden, "Operation not permitted"},
	syscall.ELOOP:        {KindSystem, "Too many levels of symbolic links"},
	syscall.ENAMETOOLONG: {KindSystem, "File name too long"},
}

// systemError turns an error of the operating system about a path into the exception
// that Python raises for it. It returns nil for other errors.
func systemError(path string, err error, hint string) *Error {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return nil
	}
	e, ok := pythonErrors[number]
	if !ok {
		return nil
	}
	like := KindInvalid
	if e.kind == KindNoFile {
		like = ""
	}
	return &Error{
		Kind:    e.kind,
		Like:    like,
		Message: fmt.Sprintf("[Errno %d] %s: %s", int(number), e.text, pytext.Quote(path)),
		Hint:    hint,
	}
}
