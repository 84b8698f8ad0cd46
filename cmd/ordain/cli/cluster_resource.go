package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// newClusterResource makes `ordain cluster resource`.
func newClusterResource(r *remote) *cobra.Command {
	p := &place{remote: r}
	var status string
	list := &cobra.Command{Use: "list [FILE]", Short: "List the files of plug-ins, or the versions of one"}
	list.Args = cobra.MaximumNArgs(1)
	list.RunE = func(c *cobra.Command, args []string) error {
		path := "/plugins/resources"
		if len(args) == 1 {
			var err error
			if path, err = resourcePath(args[0]); err != nil {
				return err
			}
		}
		if status != "" {
			path += "?" + url.Values{"status": {status}}.Encode()
		}
		var rows []row
		if err := p.at(c, get, path, nil, &rows); err != nil {
			return err
		}
		return p.resources(c, rows)
	}
	list.Flags().StringVar(&status, "status", "", "inactive, staged, active or recalled")
	sync := command("sync", "Make all staged files active at one moment, and retire the recalled ones",
		func(c *cobra.Command, _ []string) error { return p.sync(c) })
	g := &cobra.Command{Use: "resource", Short: "Files that plug-ins use: keys, scripts, cookbooks"}
	g.Long = "A file is called TYPE/PLUGIN/KIND/NAME, as automatortypes/shell/scripts/web.sh. A new version is\n" +
		"inactive: stage it, and the next sync makes it active."
	p.flags(g)
	g.AddCommand(resourceUpload(p), list,
		resourceVerb(p, "stage", "Have the next sync make a version active; the newest by default", ""),
		resourceVerb(p, "recall", "Have the next sync retire a version; the active one by default", "active"),
		sync, resourceDelete(p), resourceDownload(p))
	return g
}

// resourcePath returns the path of a file of a plug-in below the catalogue.
func resourcePath(name string) (string, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 4 {
		return "", usageError{
			fmt.Errorf("%q is no file of a plug-in; it looks like automatortypes/shell/scripts/web.sh",
				name),
		}
	}
	for i := range parts {
		parts[i] = escape(parts[i])
	}
	return "/plugins/" + strings.Join(parts, "/"), nil
}

// resources prints versions of files.
func (p *place) resources(c *cobra.Command, rows []row) error {
	if p.format != "json" {
		for _, one := range rows {
			one["file"] = strings.Join([]string{
				cell(one, "type"), cell(one, "plugin"), cell(one, "resource_type"), cell(one, "name"),
			}, "/")
			one["from"] = origin(one)
		}
	}
	return p.show(c, rows, "file", "version", "status", "from", "size", "made", "made_by")
}

func (p *place) sync(c *cobra.Command) error {
	var done row
	if err := p.at(c, post, "/plugins/sync", nil, &done); err != nil {
		return err
	}
	if p.format == "json" {
		return p.showJSON(c, done)
	}
	return p.resources(c, append(rowsOf(done["activated"]), rowsOf(done["retired"])...))
}

func resourceUpload(p *place) *cobra.Command {
	var stage, sync bool
	c := command("upload NAME FILE", "Upload a new version of a file; - is standard input",
		func(c *cobra.Command, args []string) error {
			path, err := resourcePath(args[0])
			if err != nil {
				return err
			}
			base, err := p.base(c)
			if err != nil {
				return err
			}
			server, err := p.client()
			if err != nil {
				return err
			}
			in := c.InOrStdin()
			if args[1] != "-" {
				file, err := os.Open(args[1])
				if err != nil {
					return err
				}
				defer func() { _ = file.Close() }()
				if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
					return fmt.Errorf("%s is no regular file", args[1])
				}
				in = file
			}
			var made row
			if err := server.Upload(c.Context(), base+path, in, &made); err != nil {
				return err
			}
			if stage || sync {
				version := "/versions/" + cell(made, "version")
				if err := p.at(c, post, path+version+"/stage", nil, &made); err != nil {
					return err
				}
			}
			if sync {
				return p.sync(c)
			}
			return p.resources(c, []row{made})
		})
	c.Flags().BoolVar(&stage, "stage", false, "also stage it")
	c.Flags().BoolVar(&sync, "sync", false, "also stage it, and sync")
	return c
}

// version returns the path of a version of a file: of this number, or of the newest with a status.
func (p *place) version(c *cobra.Command, name, status string, number int) (string, error) {
	path, err := resourcePath(name)
	if err != nil {
		return "", err
	}
	if number > 0 {
		return path + "/versions/" + strconv.Itoa(number), nil
	}
	var rows []row
	query := url.Values{}
	if status != "" {
		query.Set("status", status)
	}
	if err := p.at(c, get, path+"?"+query.Encode(), nil, &rows); err != nil {
		return "", err
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("there is no %s version of %s; see ordain cluster resource list %s",
			strings.TrimSpace(status+" "), name, name)
	}
	return path + "/versions/" + cell(rows[0], "version"), nil
}

func resourceVerb(p *place, verb, short, status string) *cobra.Command {
	var number int
	c := command(verb+" NAME", short, func(c *cobra.Command, args []string) error {
		path, err := p.version(c, args[0], status, number)
		if err != nil {
			return err
		}
		var one row
		if err := p.at(c, post, path+"/"+verb, nil, &one); err != nil {
			return err
		}
		return p.resources(c, []row{one})
	})
	c.Flags().IntVar(&number, "version", 0, "this version")
	return c
}

func resourceDelete(p *place) *cobra.Command {
	var number int
	c := command("delete NAME", "Delete a version of a file that is inactive",
		func(c *cobra.Command, args []string) error {
			if number < 1 {
				return usageError{errors.New("say which with --version")}
			}
			path, err := p.version(c, args[0], "", number)
			if err != nil {
				return err
			}
			return p.at(c, remove, path, nil, nil)
		})
	c.Flags().IntVar(&number, "version", 0, "this version")
	return c
}

func resourceDownload(p *place) *cobra.Command {
	var number int
	c := command("download NAME FILE", "Download a version of a file, the newest by default; - is standard output",
		func(c *cobra.Command, args []string) error {
			path, err := p.version(c, args[0], "", number)
			if err != nil {
				return err
			}
			base, err := p.base(c)
			if err != nil {
				return err
			}
			server, err := p.client()
			if err != nil {
				return err
			}
			content, err := server.Download(c.Context(), base+path+"/content")
			if err != nil {
				return err
			}
			defer func() { _ = content.Close() }()
			if args[1] == "-" {
				_, err = io.Copy(c.OutOrStdout(), content)
				return err
			}
			return replaceWhole(args[1], 0o600, func(f *os.File) error { // it may be a key
				_, err := io.Copy(f, content)
				return err
			})
		})
	c.Flags().IntVar(&number, "version", 0, "this version")
	return c
}
