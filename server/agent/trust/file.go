package trust

import (
	"errors"
	"os"
	"path/filepath"

	"ordain.dev/ordain/internal/fault"
)

// WriteFile writes a file that only its owner may read, so that it is on the disk whole or not at all.
func WriteFile(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Disk("trust.WriteFile", dir, err)
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return fault.Disk("trust.WriteFile", dir, err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err == nil {
		err = syncFolder(dir)
	}
	if err != nil {
		return fault.Disk("trust.WriteFile", path, err)
	}
	return nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
