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

// remote is what the commands that speak with a server share.
type remote struct {
	address string
	format  string
}

// row is one object of an answer.
type row = map[string]any

func (r *remote) add(c *cobra.Command) {
	address := cmp.Or(os.Getenv("ORDAIN_SERVER"), "http://127.0.0.1:8888")
	c.PersistentFlags().StringVar(&r.address, "server", address, "address of the server (or ORDAIN_SERVER)")
	c.PersistentFlags().StringVarP(&r.format, "output", "o", "table", "table or json")
}

// call sends a request that concerns no environment.
func (r *remote) call(c *cobra.Command, method, path string, body, out any) error {
	server, err := client.New(r.address)
	if err != nil {
		return usageError{err}
	}
	return server.Call(c.Context(), method, path, "", body, out)
}

// in sends a request about an environment, by its name; %s in the path becomes its id.
func (r *remote) in(c *cobra.Command, env, method, path string, body, out any) error {
	server, err := client.New(r.address)
	if err != nil {
		return usageError{err}
	}
	e, err := server.Find(c.Context(), env)
	if err != nil {
		return err
	}
	return server.Call(c.Context(), method, strings.ReplaceAll(path, "%s", e.ID), e.ID, body, out)
}

// show prints rows as a table with these columns, or as JSON. A column a.b
// is a field of a field.
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

// cell gives one field as a line of text: control characters are the
// terminal's business, not a resource's.
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
		return strconv.FormatFloat(v, 'f', -1, 64) // people read digits, not exponents
	case bool:
		return strconv.FormatBool(v)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return printable(strings.TrimSpace(b.String()))
}

// printable keeps what is not ours on one line.
func printable(s string) string { return diag.PlainLine(s) }

// group makes a command that only holds others.
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

// command makes one with a fixed number of arguments, which its use line names.
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

// userName is who runs this program; empty when nobody can say.
func userName() string {
	me, err := user.Current()
	if err != nil {
		return ""
	}
	return me.Username
}

// person is who does something, and why.
type person struct{ by, reason string }

func (p *person) add(c *cobra.Command, why string) {
	c.Flags().StringVar(&p.reason, "reason", "", why)
	c.Flags().StringVar(&p.by, "by", "", "who does it; your user name when left out")
}

// body is the beginning of a request.
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
