package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler"
)

func newCheck() *cobra.Command {
	var f struct {
		options compiler.Options
		say     sayer
	}
	c := &cobra.Command{
		Use:   "check",
		Short: "Look for errors in a project without running it",
		Long: "Reads a project and its modules and looks for all errors that can be known without running the model:\n" +
			"syntax, names, types, imports, constructors, indexes, defaults. Plug-ins are imported for what they\n" +
			"take and give, and never called.\n" +
			"Exit status: 0 nothing is wrong as far as can be seen, 1 something is.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.say.check(); err != nil {
				return err
			}
			o := f.options
			o.Check = true
			if err := chooseCache(&o.CacheDir); err != nil {
				return err
			}
			switch {
			case o.Python != "":
				o.SitePackages = compiler.PackagesOf(o.Python)
			case !o.NoPlugins:
				if err := chooseInterpreter(c.Context(), &o); err != nil {
					o.NoPlugins = true
					fmt.Fprintf(c.ErrOrStderr(), "ordain: plug-ins were not looked at: %v\n", err)
				}
			}
			out := compiler.Run(c.Context(), o)
			if err := f.say.outcome(c, out); err != nil || f.say.json() {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "no errors")
			return nil
		},
	}
	flags := c.Flags()
	projectFlags(c, &f.options)
	flags.BoolVar(&f.options.NoPlugins, "no-plugins", false, "leave Python alone: calls of plug-ins are not checked")
	f.say.flag(c)
	return c
}
