package gitsync

import (
	"github.com/go-git/go-git/v5"
)

// Origin returns the URL, without credentials, that the working copy in a folder was
// cloned from. It is empty when the folder is not the top of a working copy.
func Origin(dir string) string {
	repo, err := git.PlainOpen(dir)
	if err != nil {
		return ""
	}
	remote, err := repo.Remote("origin")
	if err != nil || len(remote.Config().URLs) == 0 {
		return ""
	}
	src, err := ParseSource(remote.Config().URLs[0])
	if err != nil {
		return ""
	}
	return src.URL
}
