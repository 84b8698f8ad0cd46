package solve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// ruleKind is a kind of condition that a layout has to meet.
type ruleKind int

const (
	ruleSize     ruleKind = iota // the size that is wanted
	ruleSizeMin                  // of the template
	ruleSizeMax                  // of the template
	ruleFilled                   // no node is without a service
	ruleMust                     // index: into scope.must
	ruleCant                     // index: into scope.cant
	ruleMin                      // name: the service
	ruleMax                      // name: the service
	ruleHardware                 // name: the service
	ruleImage                    // name: the service
	ruleUsableHardware
	ruleUsableImage
	ruleNewHardware
	ruleNewImage
	ruleKeepService  // name: the service
	ruleKeepHardware // name: the hardware type
	ruleKeepImage    // name: the image type
)

// rule is one condition. Explaining a contradiction means to leave out rules until the others can hold.
type rule struct {
	kind  ruleKind
	name  string
	index int
	text  string
}

// key identifies a rule.
type key struct {
	kind  ruleKind
	name  string
	index int
}

func (r rule) key() key { return key{r.kind, r.name, r.index} }

// rules lists the conditions of a request, those first that are best left out of an explanation.
func (s *scope) rules() []rule {
	var out []rule
	add := func(kind ruleKind, name string, index int, format string, args ...any) {
		out = append(out, rule{kind, name, index, fmt.Sprintf(format, args...)})
	}
	add(ruleUsableHardware, "", 0, "the hardware types for %s and %s are %s", s.Template.Name, s.provider,
		some(s.hardware))
	add(ruleUsableImage, "", 0, "the image types for %s and %s are %s", s.Template.Name, s.provider, some(s.image))
	if len(s.everywhere) == 0 {
		add(ruleFilled, "", 0, "each node needs at least one service")
	}
	for _, name := range s.services {
		limits := s.Template.Constraints.Services[name]
		if len(limits.HardwareTypes) > 0 {
			add(ruleHardware, name, 0, "%s needs the hardware type %s", name, orNames(limits.HardwareTypes))
		}
		if len(limits.ImageTypes) > 0 {
			add(ruleImage, name, 0, "%s needs the image type %s", name, orNames(limits.ImageTypes))
		}
	}
	if s.HardwareType != "" {
		add(ruleNewHardware, "", 0, "new nodes are to have the hardware type %s", s.HardwareType)
	}
	if s.ImageType != "" {
		add(ruleNewImage, "", 0, "new nodes are to have the image type %s", s.ImageType)
	}
	s.keepRules(add)
	for i, names := range s.must {
		add(ruleMust, "", i, "%s have to be on the same nodes", andNames(names))
	}
	for i, names := range s.cant {
		add(ruleCant, "", i, "%s", apart(names))
	}
	for _, name := range s.services {
		q := s.quantities(name)
		if q.Max < catalogue.MaxSize {
			add(ruleMax, name, 0, "%s may be on %s at most", name, nodeCount(q.Max))
		}
	}
	for _, name := range s.services {
		if slices.Contains(s.everywhere, name) {
			continue
		}
		add(ruleMin, name, 0, "%s has to be on %s at least", name, nodeCount(s.quantities(name).Min))
	}
	sizes := s.sizes()
	add(ruleSizeMin, "", 0, "%s has %s at least", s.Template.Name, nodeCount(sizes.Min))
	add(ruleSizeMax, "", 0, "%s has %s at most", s.Template.Name, nodeCount(sizes.Max))
	add(ruleSize, "", 0, "the cluster is to have %s", nodeCount(s.Size))
	return out
}

// keepRules adds what existing nodes keep.
func (s *scope) keepRules(add func(kind ruleKind, name string, index int, format string, args ...any)) {
	services, hardware, image := map[string][]int{}, map[string][]int{}, map[string][]int{}
	for _, n := range s.Existing {
		hardware[n.HardwareType] = append(hardware[n.HardwareType], n.Number)
		image[n.ImageType] = append(image[n.ImageType], n.Number)
		for _, name := range sortedSet(n.Services) {
			services[name] = append(services[name], n.Number)
		}
	}
	for _, name := range sortedKeys(hardware) {
		add(ruleKeepHardware, name, 0, "%s the hardware type %s", have(hardware[name]), name)
	}
	for _, name := range sortedKeys(image) {
		add(ruleKeepImage, name, 0, "%s the image type %s", have(image[name]), name)
	}
	for _, name := range s.services {
		if at := services[name]; len(at) > 0 && !slices.Contains(s.everywhere, name) {
			add(ruleKeepService, name, 0, "%s %s already", have(at), name)
		}
	}
}

// have begins a sentence on nodes: "node 1000 has", "nodes 1000 to 1004 and 1009 have".
func have(numbers []int) string {
	slices.Sort(numbers)
	var spans []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		switch {
		case j == i:
			spans = append(spans, strconv.Itoa(numbers[i]))
		case j == i+1:
			spans = append(spans, strconv.Itoa(numbers[i]), strconv.Itoa(numbers[j]))
		default:
			spans = append(spans, fmt.Sprintf("%d to %d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	if len(spans) > 8 {
		spans = append(spans[:7], "others")
	}
	if len(numbers) == 1 {
		return "node " + spans[0] + " has"
	}
	return "nodes " + andNames(spans) + " have"
}

// some lists names, and not too many of them.
func some(names []string) string {
	if names = sortedSet(names); len(names) > 10 {
		return strings.Join(names[:9], ", ") + " and " + strconv.Itoa(len(names)-9) + " others"
	}
	return andNames(names)
}
