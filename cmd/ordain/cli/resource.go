package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newResource() *cobra.Command {
	r := &remote{}
	var status, agent string
	var parked bool
	list := command("list ENVIRONMENT", "List resources with their states",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/resource?limit=1000"
			if status != "" {
				path += "&filter.status=" + escape(status)
			}
			if agent != "" {
				path += "&filter.agent=" + escape(agent)
			}
			if parked {
				path += "&filter.parked=true"
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			if parked {
				return r.show(c, rows, "resource_id", "status", "parked", "parked_at", "attempts")
			}
			return r.show(c, rows, "resource_id", "status", "retry_at")
		},
	)
	list.Flags().BoolVar(&parked, "parked", false,
		"only parked ones: they failed too often and are not retried until somebody unparks them")
	list.Flags().StringVar(&status, "status", "", "only in this state, such as failed")
	list.Flags().StringVar(&agent, "agent", "", "only of agents whose name contains this")
	return r.group(
		"resource",
		"Units of desired state",
		list,
		newDeploy(r),
		newUnpark(r),
		newWhy(r),
		command("show ENVIRONMENT ID", "Show one resource", func(c *cobra.Command, args []string) error {
			var one row
			if err := r.in(c, args[0], get, "/api/v2/resource/"+escape(args[1]), nil, &one); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, one)
			}
			for _, name := range sortedKeys(one) {
				fmt.Fprintf(c.OutOrStdout(), "%-20s %s\n", name, cell(one, name))
			}
			return nil
		}),
		command("logs ENVIRONMENT ID", "Show the log of one resource, newest first",
			func(c *cobra.Command, args []string) error {
				var rows []row
				if err := r.in(c, args[0], get, "/api/v2/resource/"+escape(args[1])+"/logs?limit=100", nil,
					&rows); err != nil {
					return err
				}
				return r.show(c, rows, "timestamp", "level", "action", "msg")
			},
		),
	)
}

// newDeploy makes `ordain resource deploy`.
func newDeploy(r *remote) *cobra.Command {
	var full, unpark bool
	var f filterFlags
	c := &cobra.Command{
		Use:   "deploy ENVIRONMENT [ID]",
		Short: "Deploy the resources that are not as intended, or exactly one resource whatever its state",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 2 && full:
				return usageError{errors.New("--repair is for all resources; one that is named is always run")}
			case len(args) == 2 && !f.none():
				return usageError{errors.New("a resource that is named needs no filter")}
			case len(args) == 2:
				return r.deployOne(c, args[0], args[1], unpark)
			case unpark:
				return usageError{errors.New(
					"--unpark is for one resource that is named; see `ordain resource unpark` for several")}
			}
			method := "push_incremental_deploy"
			if full {
				method = "push_full_deploy"
			}
			if !f.none() {
				return r.deployFiltered(c, args[0], f, method)
			}
			return r.in(c, args[0], post, "/api/v1/deploy", row{"agent_trigger_method": method}, nil)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&full, "repair", false, "verify and repair every resource")
	c.Flags().BoolVar(&unpark, "unpark", false,
		"deploy the named resource even if it is contested: something else keeps changing it back")
	return c
}

// deployOne deploys one resource, and says what it has to wait for.
func (r *remote) deployOne(c *cobra.Command, env, id string, unpark bool) error {
	var made struct {
		ResourceID string `json:"resource_id"`
		WaitsFor   []row  `json:"waits_for"`
	}
	path := "/api/v2/resource/" + escape(id) + "/deploy"
	if err := r.in(c, env, post, path, row{"unpark": unpark}, &made); err != nil {
		return err
	}
	if r.format == "json" {
		return r.showJSON(c, made)
	}
	fmt.Fprintln(c.OutOrStdout(), printable(made.ResourceID))
	for _, one := range made.WaitsFor {
		fmt.Fprintf(c.OutOrStdout(), "  waits for %s, which is %s\n", cell(one, "resource_id"), cell(one, "status"))
	}
	return nil
}

// newWhy makes `ordain resource why`.
func newWhy(r *remote) *cobra.Command {
	return command("why ENVIRONMENT ID", "Say why a resource is not deployed",
		func(c *cobra.Command, args []string) error {
			var why struct {
				Sentence string `json:"sentence"`
				Reasons  []row  `json:"reasons"`
				ID       string `json:"resource_id"`
				Status   string `json:"status"`
			}
			if err := r.in(c, args[0], get, "/api/v2/resource/"+escape(args[1])+"/why", nil, &why); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, why)
			}
			fmt.Fprintln(c.OutOrStdout(), printable(why.Sentence))
			for _, one := range why.Reasons {
				fmt.Fprintf(c.OutOrStdout(), "  %-12s %s\n", cell(one, "kind"), cell(one, "text"))
			}
			return nil
		},
	)
}

// newUnpark makes `ordain resource unpark`.
func newUnpark(r *remote) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "unpark ENVIRONMENT [ID...]", Short: "Unpark resources and deploy them again",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 1) {
				return usageError{fmt.Errorf("name the resources to free, or use --all")}
			}
			body := row{}
			if !all {
				body["resource_ids"] = args[1:]
			}
			var freed []string
			if err := r.in(c, args[0], post, "/api/v2/unpark", body, &freed); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, freed)
			}
			for _, id := range freed {
				fmt.Fprintln(c.OutOrStdout(), printable(id))
			}
			if len(freed) == 0 {
				fmt.Fprintln(c.ErrOrStderr(), "none of them was parked")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every resource that is parked")
	return c
}

// newDrift makes `ordain drift`.
func newDrift() *cobra.Command {
	r := &remote{}
	var open bool
	var resource string
	list := command("list ENVIRONMENT", "List the attributes that were found changed, newest first",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/drift?limit=1000"
			if open {
				path += "&filter.open=true"
			}
			if resource != "" {
				path += "&filter.resource_id=" + escape(resource)
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			for _, one := range rows {
				if one["ending"] == nil {
					one["ending"] = "open"
				}
			}
			return r.show(c, rows, "since", "ending", "resource_id", "attribute", "desired", "found", "ended")
		},
	)
	list.Flags().BoolVar(&open, "open", false, "only what still differs from the intent")
	list.Flags().StringVar(&resource, "resource", "", "only of resources whose id contains this")
	return r.group("drift", "Drift: changes that the model did not make", list)
}

// newFact makes `ordain fact`.
func newFact() *cobra.Command {
	r := &remote{}
	var all bool
	refresh := &cobra.Command{
		Use:   "refresh ENVIRONMENT [RESOURCE…]",
		Short: "Ask resources for their facts",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || (len(args) > 1) == all {
				return usageError{errors.New("usage: ordain fact refresh ENVIRONMENT RESOURCE… | --all")}
			}
			body := map[string]any{}
			if !all {
				body["resource_ids"] = args[1:]
			}
			var asked []string
			if err := r.in(c, args[0], post, "/api/v2/facts/refresh", body, &asked); err != nil {
				return err
			}
			for _, id := range asked {
				fmt.Fprintln(c.OutOrStdout(), printable(id))
			}
			return nil
		},
	}
	refresh.Flags().BoolVar(&all, "all", false, "all resources with facts that expire, or that the model waits for")
	return r.group("fact", "Facts that resources reported",
		command("list ENVIRONMENT", "List facts", func(c *cobra.Command, args []string) error {
			var rows []row
			if err := r.in(c, args[0], get, "/api/v2/facts?limit=1000", nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "resource_id", "name", "value", "updated", "expires")
		}),
		refresh,
	)
}

// newDiscovered makes `ordain discovered`.
func newDiscovered() *cobra.Command {
	r := &remote{}
	var unmanaged bool
	list := command("list ENVIRONMENT", "List what discovery resources found",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/discovered?limit=1000"
			if unmanaged {
				path += "&filter.managed=false"
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			for _, one := range rows {
				one["managed"] = one["managed_resource_uri"] != nil
			}
			return r.show(c, rows, "discovered_resource_id", "managed", "discovered_at", "discovery_resource_id")
		},
	)
	list.Flags().BoolVar(&unmanaged, "unmanaged", false, "only what no resource manages")
	return r.group(
		"discovered",
		"Resources that exist without the model",
		list,
		command("forget ENVIRONMENT ID", "Forget a discovered resource until it is found again",
			func(c *cobra.Command, args []string) error {
				return r.in(c, args[0], remove, "/api/v2/discovered/"+escape(args[1]), nil, nil)
			},
		),
	)
}
