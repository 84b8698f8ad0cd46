package desk

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/task"
)

// Handler serves provisioners over HTTP. who identifies the one that asks, before anything is read; its error is
// answered with 401.
func (d *Desk) Handler(who func(*http.Request) (Who, error)) http.Handler {
	h := &handler{Desk: d, who: who}
	routes := http.NewServeMux()
	routes.HandleFunc("POST "+task.HelloPath, serve(h, h.hello))
	routes.HandleFunc("POST "+task.TakePath, serve(h, h.take))
	routes.HandleFunc("POST "+task.RenewPath, serve(h, h.renew))
	routes.HandleFunc("POST "+task.OutputPath, serve(h, h.printed))
	routes.HandleFunc("POST "+task.FinishPath, serve(h, h.finish))
	routes.HandleFunc("GET "+task.ResourcePath+"/{hash}", h.resource)
	return routes
}

type handler struct {
	*Desk
	who func(*http.Request) (Who, error)
}

// serve decodes a request, and encodes the answer.
func serve[Q, A any](h *handler, do func(*http.Request, Who, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := h.who(r)
		if err != nil {
			refuse(w, http.StatusUnauthorized, err)
			return
		}
		var q Q
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, task.MaxBody))
		if err := decoder.Decode(&q); err != nil {
			var large *http.MaxBytesError
			code := http.StatusBadRequest
			if errors.As(err, &large) {
				code = http.StatusRequestEntityTooLarge
			}
			refuse(w, code, errors.New("the request cannot be read: "+err.Error()))
			return
		}
		a, err := do(r, who, q)
		if err != nil {
			refuse(w, codeOf(err), err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a) // the provisioner may be gone
	}
}

func codeOf(err error) int {
	switch fault.KindOf(err) {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Unavailable, fault.Exhausted:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(task.Refusal{Message: err.Error()}) // the provisioner may be gone
}

func (h *handler) hello(r *http.Request, who Who, q task.Hello) (out task.Welcome, err error) {
	if q.Protocol != task.Version {
		return out, fault.New("desk.hello", fault.Invalid, "the provisioner speaks another version of the protocol "+
			"than "+
			"the server: "+strconv.Itoa(q.Protocol)).
			Hint("use the program of the same release")
	}
	if who.ID != [16]byte{} {
		if err := h.c.Store.SeeProvisioner(r.Context(), who.ID, cut(q.Program, 200), min(max(q.Room, 0),
			10_000)); err != nil {
			return out, err
		}
	}
	c, err := h.c.Catalogues.Catalogue(r.Context(), who.Project)
	if err != nil {
		return out, err
	}
	out = task.Welcome{
		Project: who.Project.String(), Name: who.Name, LeaseMS: h.c.Lease.Milliseconds(),
		Plugins: map[string]map[string]task.PluginType{
			string(catalogue.ProviderTypes): {}, string(catalogue.AutomatorTypes): {},
		},
	}
	for kind, types := range map[catalogue.Kind]map[string]*catalogue.PluginType{
		catalogue.ProviderTypes: c.ProviderTypes, catalogue.AutomatorTypes: c.AutomatorTypes,
	} {
		for name, t := range types {
			text, err := json.Marshal(map[string]any{"resourceTypes": t.ResourceTypes})
			if err != nil {
				return out, err
			}
			var p task.PluginType
			if err := json.Unmarshal(text, &p); err != nil {
				return out, err
			}
			out.Plugins[string(kind)][name] = p
		}
	}
	return out, nil
}

func (h *handler) take(r *http.Request, who Who, q task.Take) (task.Taken, error) {
	tasks, err := h.Take(r.Context(), who, q.Room, time.Duration(q.WaitMS)*time.Millisecond)
	out := task.Taken{Tasks: tasks, Nodes: map[uuid.UUID]map[int]task.Peer{}}
	for i := range out.Tasks {
		// Each cluster's nodes once: with each task, the answer would grow as the square of the cluster.
		t := &out.Tasks[i]
		out.Nodes[t.Cluster.ID], t.Nodes = t.Nodes, nil
	}
	return out, err
}

func (h *handler) renew(r *http.Request, who Who, q task.Renew) (task.Renewed, error) {
	gone, err := h.Renew(r.Context(), who, q.Leases)
	return task.Renewed{Gone: gone}, err
}

func (h *handler) printed(r *http.Request, who Who, q task.Output) (struct{}, error) {
	// Whose task it is was decided when it was taken; that of another one has another fence, or is not this project's.
	rows, err := h.c.Store.ClusterTasksByID(r.Context(), q.ID)
	for _, row := range rows {
		if row.Project == who.Project && row.TakenBy == who.Name && row.Fence == q.Fence {
			h.Output(q)
		}
	}
	return struct{}{}, err
}

func (h *handler) finish(r *http.Request, who Who, q task.Finish) (task.Finished, error) {
	dropped, err := h.Finish(r.Context(), who, q.Results)
	return task.Finished{Dropped: dropped}, err
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (h *handler) resource(w http.ResponseWriter, r *http.Request) {
	who, err := h.who(r)
	if err != nil {
		refuse(w, http.StatusUnauthorized, err)
		return
	}
	hash := r.PathValue("hash")
	if !hashForm.MatchString(hash) {
		refuse(w, http.StatusBadRequest, errors.New("that is no SHA-256 in lower-case hexadecimal digits"))
		return
	}
	content, size, err := h.Open(r.Context(), who, hash)
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	defer content.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	_, _ = io.Copy(w, content) // a cut-off content has a wrong hash
}
