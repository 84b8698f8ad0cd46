package solve

import (
	"fmt"
	"slices"
)

// Check returns what is wrong with the nodes of a cluster, in words: whatever the request and its template do not
// allow. It knows nothing of how Layout finds nodes, and judges files that were edited by hand as well.
func Check(r Request, nodes []Node) []string {
	s, c := newScope(r)
	if c != nil {
		return c.Reasons
	}
	k := checker{scope: s}
	k.size(len(nodes))
	numbers := map[int]bool{}
	for _, n := range nodes {
		if n.Number < 1 {
			k.say("a node has the number %d: numbers are positive", n.Number)
		}
		if numbers[n.Number] {
			k.say("two nodes have the number %d", n.Number)
		}
		numbers[n.Number] = true
		k.node(n)
	}
	k.counts(nodes)
	k.kept(nodes)
	return k.wrong
}

type checker struct {
	*scope
	wrong []string
}

func (k *checker) say(format string, args ...any) {
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}

func (k *checker) size(n int) {
	sizes := k.sizes()
	if n != k.Size {
		k.say("the cluster has %s, and is to have %d", nodeCount(n), k.Size)
	}
	if n < sizes.Min {
		k.say("the cluster has %s, and the template %s wants %d at least", nodeCount(n), k.Template.Name, sizes.Min)
	}
	if n > sizes.Max {
		k.say("the cluster has %s, and may have %d at most", nodeCount(n), sizes.Max)
	}
}

func (k *checker) node(n Node) {
	say := func(format string, args ...any) { k.say(fmt.Sprintf("node %d: ", n.Number)+format, args...) }
	on := map[string]bool{}
	for _, service := range n.Services {
		if on[service] {
			say("%s is there twice", service)
		}
		on[service] = true
		if !slices.Contains(k.services, service) {
			say("%s is not a service of the cluster", service)
		}
		limits := k.Template.Constraints.Services[service]
		if allowed := limits.HardwareTypes; len(allowed) > 0 && !slices.Contains(allowed, n.HardwareType) {
			say("%s needs the hardware type %s, not %s", service, orNames(allowed), n.HardwareType)
		}
		if allowed := limits.ImageTypes; len(allowed) > 0 && !slices.Contains(allowed, n.ImageType) {
			say("%s needs the image type %s, not %s", service, orNames(allowed), n.ImageType)
		}
	}
	if len(n.Services) == 0 {
		say("it has no service")
	}
	if !slices.Contains(k.hardware, n.HardwareType) {
		say("the hardware type %q may not be used with the template and the provider", n.HardwareType)
	}
	if !slices.Contains(k.image, n.ImageType) {
		say("the image type %q may not be used with the template and the provider", n.ImageType)
	}
	if !k.exists(n.Number) {
		if k.HardwareType != "" && n.HardwareType != k.HardwareType {
			say("new nodes are to have the hardware type %s, not %s", k.HardwareType, n.HardwareType)
		}
		if k.ImageType != "" && n.ImageType != k.ImageType {
			say("new nodes are to have the image type %s, not %s", k.ImageType, n.ImageType)
		}
	}
	for _, service := range k.everywhere {
		if !on[service] {
			say("%s has to be on every node", service)
		}
	}
	for _, names := range k.must {
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return on[name] })
		if 0 < len(missing) && len(missing) < len(names) {
			say("%s have to be together, and it lacks %s", andNames(names), andNames(missing))
		}
	}
	for _, names := range k.cant {
		if !slices.ContainsFunc(names, func(name string) bool { return !on[name] }) {
			say("%s", apart(names))
		}
	}
}

func (k *checker) counts(nodes []Node) {
	counts := map[string]int{}
	for _, n := range nodes {
		for _, service := range sortedSet(n.Services) {
			counts[service]++
		}
	}
	for _, service := range k.services {
		q, n := k.quantities(service), counts[service]
		if n < q.Min {
			k.say("%s is on %s, and has to be on %d at least", service, nodeCount(n), q.Min)
		}
		if n > q.Max {
			k.say("%s is on %s, and may be on %d at most", service, nodeCount(n), q.Max)
		}
	}
}

// kept compares the nodes with those that existed before.
func (k *checker) kept(nodes []Node) {
	existing, there, next := map[int]Node{}, 0, k.next()
	for _, e := range k.Existing {
		existing[e.Number] = e
	}
	for _, n := range nodes {
		old, found := existing[n.Number]
		if !found {
			if len(k.Existing) > 0 && n.Number < next {
				k.say("node %d is new, and new nodes are numbered from %d", n.Number, next)
			}
			continue
		}
		there++
		if old.HardwareType != n.HardwareType {
			k.say("node %d exists with the hardware type %s, not %s", n.Number, old.HardwareType, n.HardwareType)
		}
		if old.ImageType != n.ImageType {
			k.say("node %d exists with the image type %s, not %s", n.Number, old.ImageType, n.ImageType)
		}
		for _, service := range sortedSet(old.Services) {
			if slices.Contains(k.services, service) && !slices.Contains(n.Services, service) {
				k.say("node %d has %s already, and keeps it", n.Number, service)
			}
		}
	}
	if want := min(len(k.Existing), len(nodes)); there < want {
		k.say("%s of %d that exist would be replaced; they stay while the cluster is large enough",
			nodeCount(want-there), len(k.Existing))
	}
}

func (s *scope) exists(number int) bool {
	return slices.ContainsFunc(s.Existing, func(n Node) bool { return n.Number == number })
}

// next returns the number of the next new node.
func (s *scope) next() int {
	next := max(s.Next, firstNumber)
	for _, n := range s.Existing {
		next = max(next, n.Number+1)
	}
	return next
}

// apart says that services may not be together.
func apart(names []string) string {
	if len(names) == 1 {
		return names[0] + " may not be on any node"
	}
	return andNames(names) + " may not be on the same node"
}
