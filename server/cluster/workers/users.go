package workers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
)

// users gives the provisioner of each project a user of its own. The record of who has which one is the owner of the
// project's data folder: so a user never gets at files of a project that had it before, because they are removed
// together. Users are counted down from the last one, since environments are counted up from the first.
type users struct {
	config isolation.Config
	last   int // number of the first project's user
	folder string
	data   func(uuid.UUID) string
}

// cell returns the cell of a project, and makes its data folder.
func (u *users) cell(project uuid.UUID) (*isolation.Cell, error) {
	number := 0
	if u.config.FirstUser != 0 {
		var err error
		if number, err = u.number(project); err != nil {
			return nil, err
		}
	}
	cell := u.config.Cell(number)
	dir := u.data(project)
	user := os.Geteuid()
	if u.config.FirstUser != 0 {
		user = int(u.config.FirstUser) + number
	}
	if err := removeForeign(dir, user); err != nil {
		return nil, fault.Disk("workers.start", dir, err)
	}
	if err := cell.Own(dir); err != nil {
		return nil, fault.Disk("workers.start", dir, err)
	}
	return cell, nil
}

// number returns the number of the project's user, which may be a new one.
func (u *users) number(project uuid.UUID) (int, error) {
	entries, err := os.ReadDir(u.folder)
	if err != nil {
		return 0, fault.Disk("workers.start", u.folder, err)
	}
	taken := map[int]bool{}
	for _, e := range entries {
		id, err := uuid.Parse(e.Name())
		if err != nil {
			continue
		}
		owner, ok := ownerOf(u.data(id))
		number := owner - int(u.config.FirstUser)
		if !ok || number <= u.last/2 || number > u.last {
			continue // it belongs to the server, or to a range that was in use before
		}
		if id == project {
			return number, nil
		}
		taken[number] = true
	}
	for number := u.last; number > u.last/2; number-- {
		if !taken[number] {
			return number, nil
		}
	}
	return 0, fault.New("workers.start", fault.Exhausted, "there is no user left for the provisioner of a project")
}

func ownerOf(path string) (int, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// removeForeign removes a data folder if something in it belongs to another user than the provisioner, as after a
// change of [isolation]: the provisioner could not change it. What is in the folder can be fetched again.
func removeForeign(dir string, user int) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if owner, ok := ownerOf(filepath.Join(dir, e.Name())); ok && owner != user {
			return os.RemoveAll(dir)
		}
	}
	return nil
}
