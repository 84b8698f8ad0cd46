package solve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// large is a request for 500 nodes with 30 constrained services.
type large struct {
	name string
	r    Request
	ok   bool
}

func service(i int) string { return fmt.Sprintf("service-%02d", i) }

func largeRequest(change func(*catalogue.Template)) Request {
	cat := &catalogue.Catalogue{
		Providers:     map[string]*catalogue.Provider{"p": {Head: catalogue.Head{Name: "p"}}},
		HardwareTypes: map[string]*catalogue.HardwareType{},
		ImageTypes:    map[string]*catalogue.ImageType{},
		Services:      map[string]*catalogue.Service{},
	}
	mapped := map[string]map[string]string{"p": {}}
	for i := range 10 {
		name := fmt.Sprintf("hardware-%d", i)
		cat.HardwareTypes[name] = &catalogue.HardwareType{Head: catalogue.Head{Name: name}, ProviderMap: mapped}
	}
	for i := range 4 {
		name := fmt.Sprintf("image-%d", i)
		cat.ImageTypes[name] = &catalogue.ImageType{Head: catalogue.Head{Name: name}, ProviderMap: mapped}
	}
	t := &catalogue.Template{Head: catalogue.Head{Name: "large"}}
	t.Defaults = catalogue.Defaults{Provider: "p", HardwareType: "hardware-3", ImageType: "image-1"}
	t.Constraints.Services = map[string]catalogue.ServiceConstraint{}
	for i := range 30 {
		t.Defaults.Services = append(t.Defaults.Services, service(i))
		cat.Services[service(i)] = &catalogue.Service{Head: catalogue.Head{Name: service(i)}}
	}
	t.Compatibility.Services = t.Defaults.Services
	change(t)
	return Request{Template: t, Catalogue: cat, Size: 500}
}

func quantity(t *catalogue.Template, i, least, most int) {
	c := t.Constraints.Services[service(i)]
	c.Quantities = &catalogue.Range{Min: least, Max: most}
	t.Constraints.Services[service(i)] = c
}

func cant(t *catalogue.Template, services ...int) {
	var names []string
	for _, i := range services {
		names = append(names, service(i))
	}
	t.Constraints.Layout.CantCoexist = append(t.Constraints.Layout.CantCoexist, names)
}

// largeRequests are of many kinds: what people write, and what makes a search hard.
func largeRequests() []large {
	var out []large
	add := func(name string, ok bool, change func(*catalogue.Template)) {
		out = append(out, large{name, largeRequest(change), ok})
	}
	for _, most := range []int{250, 249} {
		add(fmt.Sprintf("pairs of %d", most), true, func(t *catalogue.Template) {
			for i := 0; i < 30; i += 2 {
				cant(t, i, i+1)
				quantity(t, i, 1, most)
				quantity(t, i+1, 500-most, 0)
			}
		})
	}
	add("pairs, too many", false, func(t *catalogue.Template) {
		for i := 0; i < 30; i += 2 {
			cant(t, i, i+1)
			quantity(t, i, 250, 0)
			quantity(t, i+1, 250+i/28, 0)
		}
	})
	add("masters", true, func(t *catalogue.Template) {
		for i := range 15 {
			quantity(t, i, 1, 1+i%3)
			cant(t, i, 15+i)
			cant(t, i, (i+1)%15)
		}
	})
	for _, n := range []int{200, 201} { // a ring of five needs 2.5 times as many nodes
		add(fmt.Sprintf("rings of five with %d each", n), n == 200, func(t *catalogue.Template) {
			for ring := 0; ring < 30; ring += 5 {
				for i := range 5 {
					cant(t, ring+i, ring+(i+1)%5)
					quantity(t, ring+i, n, 0)
				}
			}
		})
	}
	for _, n := range []int{166, 167} {
		add(fmt.Sprintf("triangles with %d each", n), n == 166, func(t *catalogue.Template) {
			for i := 0; i < 30; i += 3 {
				cant(t, i, i+1)
				cant(t, i, i+2)
				cant(t, i+1, i+2)
				quantity(t, i, n, 0)
				quantity(t, i+1, n, 0)
				quantity(t, i+2, n, 0)
			}
		})
	}
	for _, n := range []int{333, 334} { // of three, never all
		add(fmt.Sprintf("triples with %d each", n), n == 333, func(t *catalogue.Template) {
			for i := 0; i < 30; i += 3 {
				cant(t, i, i+1, i+2)
				for k := range 3 {
					quantity(t, i+k, n, 0)
				}
			}
		})
	}
	add("own hardware", true, func(t *catalogue.Template) {
		for i := range 30 {
			t.Constraints.Services[service(i)] = catalogue.ServiceConstraint{
				HardwareTypes: []string{fmt.Sprintf("hardware-%d", i%10), fmt.Sprintf("hardware-%d", (i+3)%10)},
				ImageTypes:    []string{fmt.Sprintf("image-%d", i%4), fmt.Sprintf("image-%d", (i+1)%4)},
			}
			quantity(t, i, 10, 100)
		}
	})
	add("too few services", false, func(t *catalogue.Template) {
		for i := range 30 {
			quantity(t, i, 0, 16)
		}
		quantity(t, 7, 0, 35)
	})
	for seed := range uint64(6) {
		for _, load := range []int{60, 110, 130, 150, 170} {
			add(fmt.Sprintf("random %d with %d", seed, load), false, func(t *catalogue.Template) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				for a := range 30 {
					for b := range a {
						if rnd.IntN(100) < 10+8*int(seed) {
							cant(t, a, b)
						}
					}
					least := rnd.IntN(load)
					quantity(t, a, least, least+rnd.IntN(200))
				}
			})
		}
	}
	return out
}

// Whatever the constraints: 500 nodes with 30 services have a layout, or reasons against it, in a short time.
func TestLargeClusters(t *testing.T) {
	tool.Heavy(t, "solves clusters of thousands of machines")
	for _, l := range largeRequests() {
		t.Run(l.name, func(t *testing.T) {
			begin := time.Now()
			nodes, err := Layout(context.Background(), l.r)
			took := time.Since(begin)
			var c *Contradiction
			switch {
			case err == nil:
				for _, wrong := range Check(l.r, nodes) {
					t.Error(wrong)
				}
			case !errors.As(err, &c):
				t.Error(err)
			case l.ok:
				t.Errorf("there is a layout: %v", err)
			}
			if c != nil && strings.Contains(c.Error(), "reasonable effort") {
				t.Error(c)
			}
			// Other tests use the same processors: the benchmark measures, this finds only what grew out of bounds.
			if limit := 5 * time.Second; took > limit && !racedetector.On {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func BenchmarkLayout(b *testing.B) {
	for _, l := range largeRequests() {
		b.Run(l.name, func(b *testing.B) {
			for b.Loop() {
				_, _ = Layout(context.Background(), l.r)
			}
		})
	}
}

// A large cluster is amended as quickly, and what exists stays.
func TestLargeClustersAreAmended(t *testing.T) {
	r := largeRequest(func(t *catalogue.Template) {
		for i := range 15 {
			quantity(t, i, 1, 1+i%3)
			cant(t, i, 15+i)
		}
	})
	all := r.Template.Defaults.Services
	r.Services = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == service(3) })
	for _, step := range []struct {
		size     int
		services []string
	}{{500, r.Services}, {520, r.Services}, {520, all}, {400, all}} {
		r.Size, r.Services = step.size, step.services
		begin := time.Now()
		nodes, err := Layout(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range Check(r, nodes) {
			t.Error(wrong)
		}
		if took := time.Since(begin); took > 5*time.Second && !racedetector.On {
			t.Errorf("%d nodes took %v", step.size, took)
		}
		changed := 0
		for _, n := range nodes {
			for _, e := range r.Existing {
				if e.Number == n.Number && !slices.Equal(e.Services, n.Services) {
					changed++
				}
			}
		}
		if most := 1; changed > most { // the new service may be on one node
			t.Errorf("%d nodes: %d existing nodes changed", step.size, changed)
		}
		r.Existing = nodes
	}
}
