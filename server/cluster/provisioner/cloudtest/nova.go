package cloudtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The account of Nova, and what its cloud has.
const (
	NovaUser     = "deployer"
	NovaPassword = "a-very-secret-password"
	NovaProject  = "shop"
	NovaImage    = "debian-13" // by name
	NovaFlavor   = "m1.small"  // by name
)

// NovaImageID is the id of the image.
var NovaImageID = uuid.NewSHA1(uuid.Nil, []byte(NovaImage)).String()

// Nova is an OpenStack on loopback. It checks tokens, and keeps servers and floating addresses.
type Nova struct {
	URL     string
	mu      sync.Mutex
	builds  int // looks at a server until it is active
	fault   string
	creates []func(w http.ResponseWriter) bool
	servers []*Server
	floats  []map[string]any
	tokens  map[string]bool
	count   int
	project string // id of the project
}

// Server is a machine of Nova.
type Server struct {
	ID, Name, Status, Fault, Key, Flavor, Image, Zone string
	Metadata                                          map[string]string
	Groups                                            []string
	Created                                           time.Time
	looks                                             int
	deleted                                           bool
}

// StartNova returns a cloud without servers.
func StartNova(t testing.TB) *Nova {
	t.Helper()
	n := &Nova{tokens: map[string]bool{}, project: uuid.NewString()}
	s := httptest.NewServer(n.routes())
	t.Cleanup(s.Close)
	n.URL = s.URL
	return n
}

// Slow makes servers active after some looks.
func (n *Nova) Slow(looks int) { n.do(func() { n.builds = looks }) }

// Break makes new servers end in the state ERROR, with a message. Without one, that is over.
func (n *Nova) Break(message string) { n.do(func() { n.fault = message }) }

// RefuseCreate answers the next create with an error, and makes nothing.
func (n *Nova) RefuseCreate(status int, message string) {
	n.onCreate(func(w http.ResponseWriter) bool { novaError(w, status, message); return false })
}

// FailAfterCreate makes the next server, and answers 500.
func (n *Nova) FailAfterCreate() {
	n.onCreate(func(w http.ResponseWriter) bool {
		novaError(w, http.StatusInternalServerError, "Unexpected API Error.")
		return true
	})
}

// CutAfterCreate makes the next server, calls f, and ends the connection without an answer.
func (n *Nova) CutAfterCreate(f func()) {
	n.onCreate(func(http.ResponseWriter) bool { f(); return true })
}

func (n *Nova) onCreate(f func(w http.ResponseWriter) bool) {
	n.do(func() { n.creates = append(n.creates, f) })
}

// Add makes a server, as another provisioner would.
func (n *Nova) Add(name string, metadata map[string]string) (id string) {
	n.do(func() { id = n.add(&Server{Name: name, Metadata: metadata}).ID })
	return id
}

// Expire makes every token invalid.
func (n *Nova) Expire() { n.do(func() { clear(n.tokens) }) }

// Move gives the name of the project to another project, which has no servers.
func (n *Nova) Move() { n.do(func() { n.project, n.servers = uuid.NewString(), nil }) }

// Alive returns the servers.
func (n *Nova) Alive() (out []Server) {
	n.do(func() {
		for _, s := range n.servers {
			if !s.deleted {
				out = append(out, *s)
			}
		}
	})
	return out
}

// Floats returns how many floating addresses are taken.
func (n *Nova) Floats() (count int) {
	n.do(func() { count = len(n.floats) })
	return count
}

func (n *Nova) do(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *Nova) add(s *Server) *Server {
	n.count++
	s.ID, s.Status = uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n.count)).String(), "BUILD"
	s.Created = time.Date(2026, 11, 28, 12, 0, n.count, 0, time.UTC)
	n.servers = append(n.servers, s)
	return s
}

func (n *Nova) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /identity/v3/auth/tokens", n.login)
	mux.HandleFunc("GET /image/{$}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusMultipleChoices, object{"versions": []object{{
			"id": "v2.9", "status": "CURRENT", "links": []object{{"rel": "self", "href": n.URL + "/image/v2/"}},
		}}})
	})
	mux.HandleFunc("GET /network/{$}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"versions": []object{{
			"id": "v2.0", "status": "CURRENT", "links": []object{{"rel": "self", "href": n.URL + "/network/v2.0/"}},
		}}})
	})
	for pattern, f := range map[string]http.HandlerFunc{
		"GET /compute/v2.1/servers/detail":           n.list,
		"POST /compute/v2.1/servers":                 n.create,
		"GET /compute/v2.1/servers/{id}":             n.get,
		"DELETE /compute/v2.1/servers/{id}":          n.delete,
		"GET /compute/v2.1/flavors/detail":           n.flavors,
		"GET /image/v2/images":                       n.images,
		"GET /network/v2.0/networks":                 n.networks,
		"GET /network/v2.0/ports":                    n.ports,
		"GET /network/v2.0/floatingips":              n.listFloats,
		"POST /network/v2.0/floatingips":             n.createFloat,
		"DELETE /network/v2.0/floatingips/{address}": n.deleteFloat,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if !n.tokens[r.Header.Get("X-Auth-Token")] {
				novaError(w, http.StatusUnauthorized, "The request you have made requires authentication.")
				return
			}
			f(w, r)
		})
	}
	return mux
}

func novaError(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": status, "message": message}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

type object = map[string]any

func (n *Nova) login(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct {
						Name, Password string
						Domain         struct{ Name string }
					}
				}
			}
			Scope struct{ Project struct{ Name string } }
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	err := json.NewDecoder(r.Body).Decode(&asked)
	user := asked.Auth.Identity.Password.User
	if err != nil || user.Name != NovaUser || user.Password != NovaPassword || user.Domain.Name != "Default" ||
		asked.Auth.Scope.Project.Name != NovaProject {
		novaError(w, http.StatusUnauthorized, "The request you have made requires authentication. ("+user.Password+")")
		return
	}
	token := uuid.NewString()
	n.tokens[token] = true
	var catalog []object
	for kind, at := range map[string]string{
		"compute": "/compute/v2.1", "image": "/image", "network": "/network",
	} {
		catalog = append(catalog, object{"type": kind, "name": kind, "id": kind, "endpoints": []object{{
			"id": kind, "interface": "public", "region": "here", "region_id": "here", "url": n.URL + at,
		}}})
	}
	w.Header().Set("X-Subject-Token", token)
	answer(w, http.StatusCreated, object{"token": object{
		"project":    object{"id": n.project, "name": NovaProject},
		"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"), "catalog": catalog,
	}})
}

// show is a server as Nova shows it. Each look brings it further.
func (n *Nova) show(s *Server) object {
	if s.looks++; s.Status == "BUILD" && s.looks > n.builds {
		s.Status = "ACTIVE"
	}
	o := object{
		"id": s.ID, "name": s.Name, "status": s.Status, "metadata": s.Metadata, "created": s.Created,
		"updated": s.Created, "OS-EXT-STS:task_state": nil, "addresses": object{},
	}
	if s.Fault != "" {
		o["fault"] = object{"code": 500, "message": s.Fault, "created": s.Created}
	}
	if s.Status == "ACTIVE" {
		list := []object{{"addr": "fd00::1", "version": 6, "OS-EXT-IPS:type": "fixed"}, {
			"addr": "10.0.0.7", "version": 4, "OS-EXT-IPS:type": "fixed",
		}}
		for _, f := range n.floats {
			if f["port_id"] == "port-"+s.ID {
				list = append(list, object{
					"addr": f["floating_ip_address"], "version": 4, "OS-EXT-IPS:type": "floating",
				})
			}
		}
		o["addresses"] = object{"inside": list}
	}
	return o
}

func (n *Nova) list(w http.ResponseWriter, r *http.Request) {
	name, err := regexp.Compile(r.FormValue("name"))
	if err != nil {
		novaError(w, http.StatusBadRequest, err.Error())
		return
	}
	list := []object{}
	for _, s := range n.servers {
		if !s.deleted && name.MatchString(s.Name) {
			list = append(list, n.show(s))
		}
	}
	answer(w, http.StatusOK, object{"servers": list})
}

func (n *Nova) find(w http.ResponseWriter, r *http.Request) *Server {
	for _, s := range n.servers {
		if s.ID == r.PathValue("id") && !s.deleted {
			return s
		}
	}
	novaError(w, http.StatusNotFound, "Instance could not be found.")
	return nil
}

func (n *Nova) get(w http.ResponseWriter, r *http.Request) {
	if s := n.find(w, r); s != nil {
		answer(w, http.StatusOK, object{"server": n.show(s)})
	}
}

func (n *Nova) delete(w http.ResponseWriter, r *http.Request) {
	if s := n.find(w, r); s != nil {
		s.deleted = true
		w.WriteHeader(http.StatusNoContent)
	}
}

func (n *Nova) create(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Server struct {
			Name, ImageRef, FlavorRef string
			KeyName                   string `json:"key_name"`
			Zone                      string `json:"availability_zone"`
			Metadata                  map[string]string
			Groups                    []struct{ Name string } `json:"security_groups"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		novaError(w, http.StatusBadRequest, err.Error())
		return
	}
	a := asked.Server
	s := &Server{
		Name: a.Name, Metadata: a.Metadata, Key: a.KeyName, Flavor: a.FlavorRef, Image: a.ImageRef, Zone: a.Zone,
	}
	for _, g := range a.Groups {
		s.Groups = append(s.Groups, g.Name)
		if g.Name != "default" && g.Name != "web" {
			novaError(w, http.StatusBadRequest, "Security group "+g.Name+" not found for project.")
			return
		}
	}
	switch {
	case a.ImageRef != NovaImageID:
		novaError(w, http.StatusBadRequest, "Can not find requested image")
		return
	case a.FlavorRef != "2":
		novaError(w, http.StatusBadRequest, "Invalid flavorRef provided.")
		return
	case a.KeyName != "team":
		novaError(w, http.StatusBadRequest, "Invalid key_name provided.")
		return
	case a.Zone == "mars":
		novaError(w, http.StatusBadRequest, "The requested availability zone is not available")
		return
	}
	if len(n.creates) > 0 {
		f := n.creates[0]
		n.creates = n.creates[1:]
		answered := &noted{ResponseWriter: w}
		if f(answered) {
			n.add(s)
		}
		if !answered.wrote {
			panic(http.ErrAbortHandler)
		}
		return
	}
	if n.add(s); n.fault != "" {
		s.Status, s.Fault = "ERROR", n.fault
	}
	answer(w, http.StatusAccepted, object{"server": object{"id": s.ID, "adminPass": "generated"}})
}

type noted struct {
	http.ResponseWriter
	wrote bool
}

func (n *noted) WriteHeader(status int) {
	n.wrote = true
	n.ResponseWriter.WriteHeader(status)
}

func (n *Nova) flavors(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, object{"flavors": []object{
		{"id": "1", "name": "m1.tiny", "ram": 512, "vcpus": 1, "disk": 1},
		{"id": "2", "name": NovaFlavor, "ram": 2048, "vcpus": 1, "disk": 20},
	}})
}

func (n *Nova) images(w http.ResponseWriter, r *http.Request) {
	list := []object{}
	for _, image := range []object{
		{"id": NovaImageID, "name": NovaImage, "status": "active"},
		{"id": uuid.NewString(), "name": "twins", "status": "active"},
		{"id": uuid.NewString(), "name": "twins", "status": "active"},
	} {
		if image["name"] == r.FormValue("name") {
			list = append(list, image)
		}
	}
	answer(w, http.StatusOK, object{"images": list})
}

func (n *Nova) networks(w http.ResponseWriter, r *http.Request) {
	list := []object{}
	if r.FormValue("router:external") == "true" {
		list = append(list, object{"id": "outside", "name": "outside", "router:external": true})
	}
	answer(w, http.StatusOK, object{"networks": list})
}

func (n *Nova) ports(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, object{"ports": []object{{"id": "port-" + r.FormValue("device_id")}}})
}

func (n *Nova) listFloats(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, object{"floatingips": append([]object{}, n.floats...)})
}

func (n *Nova) createFloat(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Float object `json:"floatingip"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !strings.HasPrefix(
		fmt.Sprint(asked.Float["port_id"]), "port-") {
		novaError(w, http.StatusBadRequest, "bad floating address")
		return
	}
	n.count++
	asked.Float["id"], asked.Float["floating_ip_address"] = fmt.Sprint("f", n.count), fmt.Sprint("192.0.2.", n.count)
	n.floats = append(n.floats, asked.Float)
	answer(w, http.StatusCreated, object{"floatingip": asked.Float})
}

func (n *Nova) deleteFloat(w http.ResponseWriter, r *http.Request) {
	n.floats = slices.DeleteFunc(n.floats, func(f object) bool { return f["id"] == r.PathValue("address") })
	w.WriteHeader(http.StatusNoContent)
}
