package puppet

import (
	"os"
	"path/filepath"
	"strings"
)

// moduleFolder returns the folder of a module in an unpacked archive: the only folder in it if that is named after the
// module or the archive, as archives of the Forge have it (puppetlabs-stdlib-9.0.0), and else the folder itself.
func moduleFolder(folder, archive, module string) string {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		return folder
	}
	only := entries[0].Name()
	match := moduleName.FindStringSubmatch(only)
	if only == archive || match != nil && match[1] == module || strings.HasSuffix(only, "-"+module) {
		return filepath.Join(folder, only)
	}
	return folder
}
