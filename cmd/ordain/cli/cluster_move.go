package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/api/client"
)

// maxImport is how many bytes an import may have, as the server bounds it.
const maxImport = 32 << 20

func clusterImport(r *remote) *cobra.Command {
	p := &place{remote: r}
	var partly bool
	c := command("import FOLDER", "Import a catalogue: a folder of JSON files, as Coopr has it and export writes it",
		func(c *cobra.Command, args []string) error {
			files, wrong, err := readFolder(args[0])
			if err != nil {
				return err
			}
			for _, err := range wrong {
				fmt.Fprintln(c.ErrOrStderr(), "refused "+printable(err.Error()))
			}
			if len(wrong) > 0 && !partly {
				return errors.New("nothing was imported; mend these files, or leave them out with --partly")
			}
			var done row
			path := "/import?" + url.Values{"partly": {fmt.Sprint(partly)}}.Encode()
			if err := p.at(c, post, path, row{"files": files}, &done); err != nil {
				return err
			}
			return p.imported(c, done, len(wrong) > 0)
		})
	c.Long = "The names of folders say what is in them, as services/base.json; files of the folder plugins describe\n" +
		"plug-ins. Other files are skipped. All is imported or nothing; with --partly, what is right is\n" +
		"imported, the rest is named, and the exit status is 1."
	c.Flags().BoolVar(&partly, "partly", false, "leave out what is wrong, and what depends on that")
	p.flags(c)
	return c
}

// readFolder reads the JSON files below a folder by their paths in it. wrong are those that are not JSON.
func readFolder(folder string) (files map[string]json.RawMessage, wrong []error, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	files, total := map[string]json.RawMessage{}, int64(0)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || path.Ext(name) != ".json":
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if total += info.Size(); total > maxImport {
			return fmt.Errorf(
				"the files of %s have more than %d bytes; import folders of it one by one",
				folder,
				maxImport,
			)
		}
		text, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		if err := checkJSON(name, text); err != nil {
			wrong = append(wrong, err)
			return nil
		}
		files[name] = text
		return nil
	})
	if err == nil && len(files) == 0 && len(wrong) == 0 {
		err = fmt.Errorf("there are no JSON files below %s", folder)
	}
	return files, wrong, err
}

// imported prints what an import did. It fails if something was refused.
func (p *place) imported(c *cobra.Command, done row, refused bool) error {
	refused = refused || len(rowsOf(done["refused"])) > 0
	if p.format == "json" {
		if err := p.showJSON(c, done); err != nil {
			return err
		}
	} else {
		for _, what := range []string{"created", "replaced"} {
			for _, one := range rowsOf(done[what]) {
				fmt.Fprintf(c.OutOrStdout(), "%-8s  %s/%s\n", what, cell(one, "kind"), cell(one, "name"))
			}
		}
		fmt.Fprintf(c.OutOrStdout(), "%d created, %d replaced, %d unchanged\n", len(rowsOf(done["created"])),
			len(rowsOf(done["replaced"])), len(rowsOf(done["unchanged"])))
		for _, one := range rowsOf(done["refused"]) {
			fmt.Fprintf(c.ErrOrStderr(), "refused %s\n", cell(one, "from"))
			for _, wrong := range rowsOf(one["problems"]) {
				problem := client.Problem{Field: cell(wrong, "field"), Text: cell(wrong, "text")}
				fmt.Fprintf(c.ErrOrStderr(), "  %s\n", problem)
			}
		}
	}
	if refused {
		return errPrinted
	}
	return nil
}

func clusterExport(r *remote) *cobra.Command {
	p := &place{remote: r}
	c := command("export FOLDER", "Write a catalogue to a folder, as import takes it; secrets are not in it",
		func(c *cobra.Command, args []string) error {
			base, err := p.base(c)
			if err != nil {
				return err
			}
			server, err := p.client()
			if err != nil {
				return err
			}
			text, err := server.Whole(c.Context(), base+"/export", "")
			if err != nil {
				return err
			}
			var kinds map[string][]json.RawMessage
			if err := json.Unmarshal(text, &kinds); err != nil {
				return err
			}
			count := 0
			for _, kind := range sortedKeys(kinds) {
				if _, known := catalogueKinds[kind]; !known {
					return fmt.Errorf(
						"the server exports %q, which this program does not know; take a newer one",
						kind,
					)
				}
				for _, one := range kinds[kind] {
					if err := writeEntity(filepath.Join(args[0], kind), one); err != nil {
						return err
					}
					count++
				}
			}
			if p.format == "json" {
				return p.showJSON(c, row{"entities": count})
			}
			fmt.Fprintf(c.OutOrStdout(), "%d entities\n", count)
			return nil
		})
	p.flags(c)
	return c
}

// writeEntity writes an entity to a file that is called as it is.
func writeEntity(folder string, entity json.RawMessage) error {
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(entity, &named); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, entity, "", "  "); err != nil {
		return err
	}
	text.WriteByte('\n')
	file := url.PathEscape(named.Name) + ".json"
	if strings.HasPrefix(file, ".") { // import skips hidden files
		file = "%2E" + file[1:]
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return replaceWhole(filepath.Join(folder, file), 0o644, func(f *os.File) error {
		_, err := f.Write(text.Bytes())
		return err
	})
}
