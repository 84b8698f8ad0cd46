package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// clusterFlags say what a cluster should be, or what to change of it. For people they have the words of the command
// line, and body translates them to those of the API.
type clusterFlags struct {
	command *cobra.Command

	texts   map[string]*string   // by flag
	lists   map[string]*[]string // by flag
	numbers map[string]*[]int    // by flag
	size    int
	config  string
	fields  []string
	sync    bool
}

// wishArguments and changeArguments are the names in the API of flags that only new clusters have, and only old ones.
// sharedArguments are those of both.
var (
	wishArguments = map[string]string{
		"template": "clusterTemplate", "services": "services", "provider": "provider", "hardware": "hardwaretype",
		"image": "imagetype", "lease": "initialLeaseDuration", "dns-suffix": "dnsSuffix",
	}
	changeArguments = map[string]string{
		"add-service": "addServices", "remove-service": "removeServices", "extend": "extend", "expires": "expireTime",
		"replace-node": "replaceNodes", "remove-node": "removeNodes", "sync": "sync",
	}
	sharedArguments = map[string]string{
		"size": "numMachines", "config": "config", "field": "providerFields", "description": "description",
	}
)

func newClusterFlags(c *cobra.Command) *clusterFlags {
	f := &clusterFlags{
		command: c, texts: map[string]*string{}, lists: map[string]*[]string{}, numbers: map[string]*[]int{},
	}
	l := c.Flags()
	l.IntVar(&f.size, "size", 0, "how many machines")
	f.text("description", "what it is for")
	l.StringVar(&f.config, "config", "",
		"configuration beyond the template's: a file with a JSON object, - for standard input, or the object itself")
	l.StringArrayVar(&f.fields, "field", nil,
		"a field of the provider, k=v; secret ones from a file, k=@FILE, or standard input, k=@-; may be repeated")
	return f
}

func (f *clusterFlags) text(name, usage string) {
	f.texts[name] = f.command.Flags().String(name, "", usage)
}

func (f *clusterFlags) list(name, usage string) {
	f.lists[name] = f.command.Flags().StringSlice(name, nil, usage)
}

func (f *clusterFlags) number(name, usage string) {
	f.numbers[name] = f.command.Flags().IntSlice(name, nil, usage)
}

// wish adds the flags that only new clusters have.
func (f *clusterFlags) wish() {
	f.text("template", "template of the catalogue that it is made from")
	f.list("services", "its services, a,b; those of the template by default")
	f.text("provider", "who provides the machines; as the template says by default")
	f.text("hardware", "hardware type of all machines; the layout decides by default")
	f.text("image", "image type of all machines; the layout decides by default")
	f.text("lease", "how long it lasts, such as 12h or 2d; as the template says by default")
	f.text("dns-suffix", "end of the names of its machines")
}

// change adds the flags that only clusters have that are there.
func (f *clusterFlags) change() {
	f.list("add-service", "add a service; may be repeated")
	f.list("remove-service", "remove a service; may be repeated")
	f.text("extend", "let it last longer, by 12h or 1d")
	f.text("expires", "when it ends, such as 2027-01-31T18:00:00Z")
	f.number("replace-node", "make a node anew, by its number; may be repeated")
	f.number("remove-node", "remove a node, by its number; may be repeated")
	f.command.Flags().BoolVar(&f.sync, "sync", false, "take the newest versions of all that it is made from")
}

// any reports whether one of these flags was given, and which.
func (f *clusterFlags) any(of map[string]string) (string, bool) {
	for _, name := range sortedKeys(of) {
		if f.command.Flags().Changed(name) {
			return name, true
		}
	}
	return "", false
}

// body returns the arguments of a request: those of the flags that were given.
func (f *clusterFlags) body() (row, error) {
	body := row{}
	for _, names := range []map[string]string{wishArguments, changeArguments, sharedArguments} {
		for flag, name := range names {
			if !f.command.Flags().Changed(flag) {
				continue
			}
			value, err := f.value(flag)
			if err != nil {
				return nil, err
			}
			body[name] = value
		}
	}
	return body, nil
}

func (f *clusterFlags) value(flag string) (any, error) {
	switch flag {
	case "size":
		return f.size, nil
	case "sync":
		return f.sync, nil
	case "config":
		return f.readConfig()
	case "field":
		return f.readFields()
	}
	if text := f.texts[flag]; text != nil {
		return *text, nil
	}
	if list := f.lists[flag]; list != nil {
		return *list, nil
	}
	return *f.numbers[flag], nil
}

// maxConfig bounds how much is read of a configuration.
const maxConfig = 4 << 20

func (f *clusterFlags) readConfig() (row, error) {
	text := []byte(f.config)
	if !strings.HasPrefix(f.config, "{") && !strings.HasPrefix(f.config, "[") {
		var err error
		if text, err = readInput(f.command, f.config, maxConfig); err != nil {
			return nil, err
		}
	}
	var config row
	if err := json.Unmarshal(text, &config); err != nil || config == nil {
		return nil, usageError{fmt.Errorf("--config is not a JSON object: %w", orNotObject(err))}
	}
	return config, nil
}

func orNotObject(err error) error {
	if err == nil {
		return errors.New("it is null")
	}
	return err
}

// readInput reads a file, or standard input when it is called -, and refuses more than a limit.
func readInput(c *cobra.Command, file string, limit int64) ([]byte, error) {
	in := c.InOrStdin()
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", file, limit)
	}
	return text, err
}

// readFields returns the fields of the provider. It reads those with a @ from a file, without the line break at its
// end.
func (f *clusterFlags) readFields() (row, error) {
	fields := row{}
	for _, one := range f.fields {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, usageError{errors.New("--field is name=value, or name=@FILE for what is secret")}
		}
		if file, is := strings.CutPrefix(value, "@"); is {
			text, err := readInput(f.command, file, maxSecret)
			if err != nil {
				return nil, fmt.Errorf("--field %s: %w", name, err)
			}
			value = strings.TrimRight(string(text), "\r\n")
		}
		fields[name] = value
	}
	return fields, nil
}

// open returns the names of the fields whose values stand on the command line, where other users can read them.
func (f *clusterFlags) open() []string {
	var names []string
	for _, one := range f.fields {
		if name, value, ok := strings.Cut(one, "="); ok && !strings.HasPrefix(value, "@") {
			names = append(names, name)
		}
	}
	return names
}

// keepSecret refuses values of secret fields on the command line. A template that cannot be read says nothing about its
// fields; the server refuses it anyway.
func (k *clusters) keepSecret(c *cobra.Command, f *clusterFlags, template, provider string) error {
	names := f.open()
	if len(names) == 0 || template == "" {
		return nil
	}
	path := sharedCatalogue + "/project/" + k.project + "/clustertemplates/" + escape(template) + "/form"
	if provider != "" {
		path += "?" + url.Values{"provider": {provider}}.Encode()
	}
	var form struct {
		Fields []struct {
			Name      string `json:"name"`
			Sensitive bool   `json:"sensitive"`
		} `json:"fields"`
	}
	if k.server.Call(c.Context(), get, path, "", nil, &form) != nil {
		return nil
	}
	for _, field := range form.Fields {
		for _, name := range names {
			if field.Sensitive && field.Name == name {
				return usageError{fmt.Errorf("the field %s is secret, and others can read command lines: say "+
					"--field %s=@FILE, or --field %s=@- and give it on standard input", name, name, name)}
			}
		}
	}
	return nil
}

// wishBody returns the body of a request for a new cluster.
func (k *clusters) wishBody(c *cobra.Command, f *clusterFlags, name string) (row, error) {
	if err := k.find(c); err != nil {
		return nil, err
	}
	if err := k.keepSecret(c, f, *f.texts["template"], *f.texts["provider"]); err != nil {
		return nil, err
	}
	body, err := f.body()
	if err != nil {
		return nil, err
	}
	body["name"] = name
	return body, nil
}

// changeBody returns the body of a request for another shape of a cluster.
func (k *clusters) changeBody(c *cobra.Command, f *clusterFlags, name string) (row, error) {
	if err := k.find(c); err != nil {
		return nil, err
	}
	if len(f.open()) > 0 {
		var one row
		if err := k.call(c, get, "/"+escape(name), nil, &one); err != nil {
			return nil, err
		}
		if err := k.keepSecret(c, f, cell(one, "template"), cell(one, "provider")); err != nil {
			return nil, err
		}
	}
	return f.body()
}

// planned prints what would be done.
func (k *clusters) planned(c *cobra.Command, path string, body row) error {
	var plan row
	if err := k.call(c, post, path+"/plan", body, &plan); err != nil {
		return err
	}
	if k.format == "json" {
		return k.showJSON(c, plan)
	}
	text, _ := plan["plan"].(row)
	printText(c, text["text"])
	return nil
}

func clusterCreate(k *clusters) *cobra.Command {
	var f *clusterFlags
	var planOnly bool
	c := command("create NAME", "Create a cluster from a template", func(c *cobra.Command, args []string) error {
		body, err := k.wishBody(c, f, args[0])
		if err != nil {
			return err
		}
		if planOnly {
			return k.planned(c, "", body)
		}
		var done row
		if err := k.call(c, post, "", body, &done); err != nil {
			return err
		}
		return k.changed(c, done)
	})
	f = newClusterFlags(c)
	f.wish()
	c.Flags().BoolVar(&planOnly, "plan", false, "only show what would be done")
	_ = c.MarkFlagRequired("template")
	return c
}

func clusterAmend(k *clusters) *cobra.Command {
	var f *clusterFlags
	var planOnly bool
	c := command(
		"amend NAME",
		"Change a cluster; what is not said stays",
		func(c *cobra.Command, args []string) error {
			body, err := k.changeBody(c, f, args[0])
			if err != nil {
				return err
			}
			if len(body) == 0 {
				return usageError{errors.New("say what to change: ordain cluster amend --help")}
			}
			if planOnly {
				return k.planned(c, "/"+escape(args[0]), body)
			}
			var done row
			if err := k.call(c, patch, "/"+escape(args[0]), body, &done); err != nil {
				return err
			}
			return k.changed(c, done)
		},
	)
	f = newClusterFlags(c)
	f.change()
	c.Flags().BoolVar(&planOnly, "plan", false, "only show what would be done")
	return c
}

func clusterPlan(k *clusters) *cobra.Command {
	var f *clusterFlags
	c := command("plan NAME", "Show what create or amend would do, and do nothing",
		func(c *cobra.Command, args []string) error {
			wish, isWish := f.any(wishArguments)
			change, isChange := f.any(changeArguments)
			switch {
			case isWish && isChange:
				return usageError{
					fmt.Errorf("--%s is for new clusters, and --%s for those that are there", wish, change),
				}
			case isWish && *f.texts["template"] == "":
				return usageError{fmt.Errorf("--%s is for new clusters, which need a --template", wish)}
			case isWish:
				body, err := k.wishBody(c, f, args[0])
				if err != nil {
					return err
				}
				return k.planned(c, "", body)
			}
			body, err := k.changeBody(c, f, args[0])
			if err != nil {
				return err
			}
			return k.planned(c, "/"+escape(args[0]), body)
		})
	c.Long = "With --template it shows what create would do, and otherwise what amend would do."
	f = newClusterFlags(c)
	f.wish()
	f.change()
	return c
}

// clusterServices makes a command that starts, stops or restarts services.
func clusterServices(k *clusters, verb, short string) *cobra.Command {
	var all bool
	c := &cobra.Command{Use: verb + " NAME SERVICE…", Short: short}
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 || len(args) == 1 != all {
			return usageError{fmt.Errorf("usage: ordain cluster %s NAME SERVICE…, or %s NAME --all", verb, verb)}
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		body := row{}
		if !all {
			body["services"] = args[1:]
		}
		var done row
		if err := k.call(c, post, "/"+escape(args[0])+"/services/"+verb, body, &done); err != nil {
			return err
		}
		return k.changed(c, done)
	}
	c.Flags().BoolVar(&all, "all", false, "all services, or when they are started, all that are stopped")
	return c
}
