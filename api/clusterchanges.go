package api

import (
	"context"

	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/store"
)

// clusterServiceCalls are changes of the services and the configuration of a cluster.
func (s *server) clusterServiceCalls(c *calls, one string) {
	const see, change = access.SeeClusters, access.ChangeCluster
	services, config := one+"/services", one+"/config"
	v2(c, http.MethodGet, config, "Show the configuration that a cluster adds to its template's.", see,
		s.getClusterConfig)
	v2(c, http.MethodPut, config, "Replace the configuration of a cluster; its services are configured and started "+
		"again.",
		change, s.putClusterConfig)
	v2(c, http.MethodGet, services, "List the services of a cluster, and how far they are.", see, s.listClusterServices)
	v2(c, http.MethodPost, services, "Add services to a cluster.", change, s.addClusterServices)
	v2(c, http.MethodDelete, services, "Remove services from a cluster.", change, s.removeClusterServices)
	v2(c, http.MethodPost, services+"/start", "Start services and what they need; without names, all that are stopped.",
		change, s.startServices)
	v2(c, http.MethodPost, services+"/stop", "Stop services and what needs them; without names, all.", change,
		s.stopServices)
	v2(c, http.MethodPost, services+"/restart", "Restart services and what needs them; without names, all.", change,
		s.restartServices)
	v2(c, http.MethodPost, services+"/{service}/start", "Start a service and what it needs.", change, s.startService)
	v2(c, http.MethodPost, services+"/{service}/stop", "Stop a service and what needs it.", change, s.stopService)
	v2(c, http.MethodPost, services+"/{service}/restart", "Restart a service and what needs it.", change,
		s.restartService)
}

// clusterAmendment is a change of a cluster: what is left out stays.
type clusterAmendment struct {
	oneCluster
	Size           *int           `arg:"numMachines"`
	AddServices    []string       `arg:"addServices"`
	RemoveServices []string       `arg:"removeServices"`
	Start          []string       `arg:"startServices"`
	Stop           []string       `arg:"stopServices"`
	Restart        []string       `arg:"restartServices"`
	Config         map[string]any `arg:"config"`
	Fields         map[string]any `arg:"providerFields"`
	Description    *string        `arg:"description"`
	ExpireTime     any            `arg:"expireTime"` // milliseconds since 1970, or a time
	Extend         any            `arg:"extend"`     // milliseconds, or 2d
	Replace        []int          `arg:"replaceNodes"`
	Remove         []int          `arg:"removeNodes"`
	Sync           bool           `arg:"sync"`
	Of             string         `arg:"digest"` // of the file that the sender has read
}

func (a clusterAmendment) amendment() (out cluster.Amendment, err error) {
	out = cluster.Amendment{
		Size: a.Size, AddServices: a.AddServices, RemoveServices: a.RemoveServices, Start: a.Start, Stop: a.Stop,
		Restart: a.Restart, Config: a.Config, Description: a.Description, Replace: a.Replace, Remove: a.Remove,
		Sync: a.Sync, Of: a.Of,
	}
	if out.Fields, err = rawFields(a.Fields); err != nil {
		return out, err
	}
	if out.Extend, _, err = durationOf("extend", a.Extend); err != nil {
		return out, err
	}
	out.Expires, err = momentOf("expireTime", a.ExpireTime)
	return out, err
}

// durationOf reads an argument that is a number of milliseconds, or a text with s, m, h or d.
func durationOf(name string, value any) (d time.Duration, given bool, err error) {
	if value == nil {
		return 0, false, nil
	}
	text, ok := value.(string)
	if n, is := value.(int); is {
		text, ok = strconv.Itoa(n), true
	}
	if !ok {
		return 0, true, wrongArgument(name, "Input should be a number of milliseconds, or a text as 2d")
	}
	negative := strings.HasPrefix(strings.TrimSpace(text), "-")
	read, err := catalogue.ParseDuration(strings.TrimPrefix(strings.TrimSpace(text), "-"))
	if err != nil {
		return 0, true, wrongArgument(name, err.Error())
	}
	if negative {
		read = -read
	}
	return time.Duration(read), true, nil
}

// momentOf reads an argument that is a time: milliseconds since 1970, or a text.
func momentOf(name string, value any) (*time.Time, error) {
	switch x := value.(type) {
	case nil:
		return nil, nil
	case int:
		if x < 0 || int64(x) > math.MaxInt64/int64(time.Millisecond) {
			return nil, wrongArgument(name, "Input should be a number of milliseconds since 1970")
		}
		return new(time.UnixMilli(int64(x)).UTC()), nil
	case string:
		if n, err := strconv.Atoi(x); err == nil {
			return momentOf(name, n)
		}
		t, err := store.ParseTime(x)
		if err != nil {
			return nil, wrongArgument(name, err.Error())
		}
		return &t, nil
	}
	return nil, wrongArgument(name, "Input should be a time, or a number of milliseconds since 1970")
}

func wrongArgument(name, text string) error {
	return &argumentError{fields: []fieldError{{Type: "value_error", Loc: []string{name}, Msg: text}}}
}

func (s *server) amend(ctx context.Context, a oneCluster, change cluster.Amendment) (changedCluster, error) {
	clusters, err := s.clusterService()
	if err != nil {
		return changedCluster{}, err
	}
	e, err := s.store.Environment(ctx, a.Env)
	if err != nil {
		return changedCluster{}, err
	}
	p, written, err := clusters.Amend(ctx, e, a.Name, change)
	if err != nil {
		return changedCluster{}, err
	}
	return changedOf(a.Name, p, written), nil
}

func (s *server) amendCluster(ctx context.Context, a clusterAmendment) (changedCluster, error) {
	change, err := a.amendment()
	if err != nil {
		return changedCluster{}, err
	}
	return s.amend(ctx, a.oneCluster, change)
}

func (s *server) amendClusterByPost(ctx context.Context, a clusterAmendment) (changedCluster, error) {
	return s.amendCluster(ctx, a)
}

func (s *server) planCluster(ctx context.Context, a clusterAmendment) (plannedCluster, error) {
	clusters, err := s.clusterService()
	if err != nil {
		return plannedCluster{}, err
	}
	change, err := a.amendment()
	if err != nil {
		return plannedCluster{}, err
	}
	e, err := s.store.Environment(ctx, a.Env)
	if err != nil {
		return plannedCluster{}, err
	}
	p, err := clusters.ProposeAmendment(ctx, e, a.Name, change)
	if err != nil {
		return plannedCluster{}, err
	}
	return plannedOf(p), nil
}

func (s *server) syncCluster(ctx context.Context, a oneCluster) (changedCluster, error) {
	return s.amend(ctx, a, cluster.Amendment{Sync: true})
}

type oneNode struct {
	oneCluster
	Number int `arg:"number,required"`
}

func (s *server) replaceNode(ctx context.Context, a oneNode) (changedCluster, error) {
	return s.amend(ctx, a.oneCluster, cluster.Amendment{Replace: []int{a.Number}})
}

type clusterConfig struct {
	Config map[string]any `json:"config"`
	Digest string         `json:"digest"` // of the file
}

func (s *server) getClusterConfig(ctx context.Context, a oneCluster) (clusterConfig, error) {
	f, err := s.clusterFile(ctx, a)
	if err != nil {
		return clusterConfig{}, err
	}
	out := clusterConfig{Config: f.Manifest.Config, Digest: f.Digest}
	if out.Config == nil {
		out.Config = map[string]any{}
	}
	return out, nil
}

type newClusterConfig struct {
	oneCluster
	Config  map[string]any `arg:"config,required"`
	Restart *bool          `arg:"restart"` // Coopr has it; a service that is configured is always started again
	Of      string         `arg:"digest"`
}

func (s *server) putClusterConfig(ctx context.Context, a newClusterConfig) (changedCluster, error) {
	if a.Restart != nil && !*a.Restart {
		return changedCluster{}, wrongArgument("restart",
			"services are always started again after they were configured: leave it out, or say true")
	}
	return s.amend(ctx, a.oneCluster, cluster.Amendment{Config: a.Config, Of: a.Of})
}

// listClusterServices shows the services that are wanted, and those that still are on nodes.
func (s *server) listClusterServices(ctx context.Context, a oneCluster) ([]clusterServiceView, error) {
	c, err := s.getCluster(ctx, a)
	if err != nil {
		return nil, err
	}
	return servicesOf(c), nil
}

type clusterServices struct {
	oneCluster
	Services []string `arg:"services,required"`
}

func (s *server) addClusterServices(ctx context.Context, a clusterServices) (changedCluster, error) {
	return s.amend(ctx, a.oneCluster, cluster.Amendment{AddServices: a.Services})
}

func (s *server) removeClusterServices(ctx context.Context, a clusterServices) (changedCluster, error) {
	return s.amend(ctx, a.oneCluster, cluster.Amendment{RemoveServices: a.Services})
}

type someServices struct {
	oneCluster
	Services []string `arg:"services"`
}

// all returns the services that are named, or all that the file has.
func (s *server) all(ctx context.Context, a someServices, stopped bool) ([]string, error) {
	if len(a.Services) > 0 {
		return a.Services, nil
	}
	f, err := s.clusterFile(ctx, a.oneCluster)
	if err != nil {
		return nil, err
	}
	if !stopped {
		return f.Manifest.Services, nil
	}
	if len(f.Manifest.Stopped) == 0 {
		return nil, fault.New("api", fault.Conflict, "no service of the cluster is stopped")
	}
	return f.Manifest.Stopped, nil
}

func (s *server) startServices(ctx context.Context, a someServices) (changedCluster, error) {
	names, err := s.all(ctx, a, true)
	if err != nil {
		return changedCluster{}, err
	}
	return s.amend(ctx, a.oneCluster, cluster.Amendment{Start: names})
}

func (s *server) stopServices(ctx context.Context, a someServices) (changedCluster, error) {
	names, err := s.all(ctx, a, false)
	if err != nil {
		return changedCluster{}, err
	}
	return s.amend(ctx, a.oneCluster, cluster.Amendment{Stop: names})
}

func (s *server) restartServices(ctx context.Context, a someServices) (changedCluster, error) {
	names, err := s.all(ctx, a, false)
	if err != nil {
		return changedCluster{}, err
	}
	return s.amend(ctx, a.oneCluster, cluster.Amendment{Restart: names})
}

type oneService struct {
	oneCluster
	Service string `arg:"service,required"`
}

func (s *server) startService(ctx context.Context, a oneService) (changedCluster, error) {
	return s.amend(ctx, a.oneCluster, cluster.Amendment{Start: []string{a.Service}})
}

func (s *server) stopService(ctx context.Context, a oneService) (changedCluster, error) {
	return s.amend(ctx, a.oneCluster, cluster.Amendment{Stop: []string{a.Service}})
}

func (s *server) restartService(ctx context.Context, a oneService) (changedCluster, error) {
	return s.amend(ctx, a.oneCluster, cluster.Amendment{Restart: []string{a.Service}})
}
