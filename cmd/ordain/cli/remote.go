package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/api/client"
	"ordain.dev/ordain/internal/diag"
)

// remote holds the flags of the commands that talk to a server, and sends their requests.
type remote struct {
	address string
	ca      string // file with the authorities of the server's certificate
	format  string
}

// row is a JSON object of an answer.
type row = map[string]any

func (r *remote) add(c *cobra.Command) {
	address := cmp.Or(os.Getenv("ORDAIN_SERVER"), "http://127.0.0.1:8888")
	c.PersistentFlags().StringVar(&r.address, "server", address, "address of the server (or ORDAIN_SERVER)")
	c.PersistentFlags().StringVar(&r.ca, "ca", os.Getenv("ORDAIN_CA"),
		"file with the authority of the server's certificate, in PEM, if the machine does not know it (or ORDAIN_CA)")
	c.PersistentFlags().StringVarP(&r.format, "output", "o", "table", "table or json")
}

// anonymous returns a client of the server that the flags name, which sends no token.
func (r *remote) anonymous() (*client.Client, error) {
	server, err := client.New(r.address)
	if err == nil && r.ca != "" {
		err = server.Trust(r.ca)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return server, nil
}

// call sends a request that is not about an environment.
func (r *remote) call(c *cobra.Command, method, path string, body, out any) error {
	server, err := r.client()
	if err != nil {
		return err
	}
	return server.Call(c.Context(), method, path, "", body, out)
}

// in sends a request about the environment with this name. It replaces %s in the
// path by the environment's id.
func (r *remote) in(c *cobra.Command, env, method, path string, body, out any) error {
	server, err := r.client()
	if err != nil {
		return err
	}
	e, err := server.Find(c.Context(), env)
	if err != nil {
		return err
	}
	return server.Call(c.Context(), method, strings.ReplaceAll(path, "%s", e.ID), e.ID, body, out)
}

// show prints rows as a table with these columns, or as JSON. The column a.b is
// the field b of the object in the field a.
func (r *remote) show(c *cobra.Command, rows []row, columns ...string) error {
	if r.format == "json" {
		return r.showJSON(c, rows)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
	for i, column := range columns {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, strings.ToUpper(column[strings.LastIndexByte(column, '.')+1:]))
	}
	fmt.Fprintln(w)
	for _, one := range rows {
		for i, column := range columns {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell(one, column))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func (r *remote) showJSON(c *cobra.Command, v any) error {
	e := json.NewEncoder(c.OutOrStdout())
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// cell returns a field as one line of text without control characters.
func cell(one row, column string) string {
	var v any = one
	for name := range strings.SplitSeq(column, ".") {
		object, ok := v.(row)
		if !ok {
			return ""
		}
		v = object[name]
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return printable(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64) // without an exponent, for people
	case bool:
		return strconv.FormatBool(v)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return printable(strings.TrimSpace(b.String()))
}

// printable makes text from elsewhere safe to print on one line of a terminal.
func printable(s string) string { return diag.PlainLine(s) }

// group makes a command that only has other commands below it.
func (r *remote) group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	r.add(c)
	c.AddCommand(commands...)
	return c
}

// command makes a command with a fixed number of arguments, which its usage line names.
func command(use, short string, do func(c *cobra.Command, args []string) error) *cobra.Command {
	want := len(strings.Fields(use)) - 1
	return &cobra.Command{
		Use: use, Short: short, RunE: do,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != want {
				return usageError{fmt.Errorf("usage: ordain … %s", use)}
			}
			return nil
		},
	}
}

const (
	get    = http.MethodGet
	put    = http.MethodPut
	post   = http.MethodPost
	remove = http.MethodDelete
	patch  = http.MethodPatch
)

func escape(segment string) string { return url.PathEscape(segment) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// userName returns the name of the user who runs this program, or an empty string.
func userName() string {
	me, err := user.Current()
	if err != nil {
		return ""
	}
	return me.Username
}

// person holds the flags that say who does something, and why.
type person struct{ by, reason string }

func (p *person) add(c *cobra.Command, why string) {
	c.Flags().StringVar(&p.reason, "reason", "", why)
	c.Flags().StringVar(&p.by, "by", "", "who does it (default: your user name)")
}

// body returns a request's body with the person and the reason. It fails if either is missing.
func (p *person) body() (row, error) {
	by := p.by
	if by == "" {
		by = userName()
	}
	switch {
	case p.reason == "":
		return nil, usageError{errors.New("say why with --reason; it is kept")}
	case by == "":
		return nil, usageError{errors.New("say who you are with --by")}
	}
	return row{"by": by, "reason": p.reason}, nil
}
