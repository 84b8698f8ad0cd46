package solve

import (
	"maps"
	"slices"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// block is services that are always together, by the rules that they have to coexist.
type block struct {
	services   []string
	need, most int // on how many nodes
	hardware   set
	image      set
	old        bool // one of its services exists on a node
}

// class is nodes that are alike: what they have, what they may get, and what they may be.
type class struct {
	n        int
	base     set // blocks they have
	may      set // blocks they may get
	hardware set
	image    set
	fresh    bool
	nodes    []int // those that exist: indexes into Request.Existing, the oldest first
}

// problem is a request in numbers, with some of its rules left out.
type problem struct {
	*scope
	hardwareNames []string // what the numbers in sets of hardware types mean, the preferred one first
	imageNames    []string
	blocks        []block
	apart         []set   // no node has all of one
	apartOf       [][]set // by block
	never         set     // blocks that no node may have
	clash         []set   // by block: those it cannot share a node with
	cliques       []set   // of blocks that all clash
	parts         []set   // blocks that have nothing to do with those of other parts: a node may have any of each
	filled        bool    // nodes need a block
	existing      []class
	fresh         class
	size          int
	broken        bool // no layout, whatever the nodes have
	anySize       bool
	smallest      int // sizes that are allowed
	largest       int
}

// newProblem builds the problem of a request without the rules that are off. It returns nil if there are too many
// groups of services to number them.
func newProblem(s *scope, off map[key]bool) *problem {
	p := &problem{scope: s, size: s.Size}
	on := func(kind ruleKind, name string, index int) bool { return !off[key{kind, name, index}] }
	p.sizes(on)
	p.hardwareNames = s.typeNames(s.hardware, on(ruleUsableHardware, "", 0), true)
	p.imageNames = s.typeNames(s.image, on(ruleUsableImage, "", 0), false)
	blockOf := p.group(on)
	if len(p.blocks) > capacity || len(p.hardwareNames) > capacity || len(p.imageNames) > capacity {
		return nil
	}
	p.filled = len(s.everywhere) == 0 && on(ruleFilled, "", 0)
	all := set{}
	for i := range p.blocks {
		all.add(i)
		p.limits(&p.blocks[i], on)
		if p.blocks[i].need > p.blocks[i].most {
			p.broken = true
		}
	}
	for i, names := range s.cant {
		if !on(ruleCant, "", i) {
			continue
		}
		var blocks set
		for _, name := range names {
			if b, found := blockOf[name]; found {
				blocks.add(b)
			}
		}
		if blocks.size() == 1 {
			p.never = p.never.or(blocks)
		} else if !blocks.empty() {
			p.apart = append(p.apart, blocks)
		}
	}
	p.clashes()
	p.separate()
	p.classes(on, blockOf, all.minus(p.never))
	return p
}

func (p *problem) sizes(on func(ruleKind, string, int) bool) {
	sizes := p.scope.sizes()
	if !on(ruleSizeMin, "", 0) {
		sizes.Min = 1
	}
	if !on(ruleSizeMax, "", 0) {
		sizes.Max = catalogue.MaxSize
	}
	p.smallest, p.largest = sizes.Min, sizes.Max
	p.anySize = !on(ruleSize, "", 0)
	if sizes.Min > sizes.Max || !p.anySize && (p.size < sizes.Min || p.size > sizes.Max) {
		p.broken = true
	}
}

// typeNames lists hardware or image types: of those that nothing asks for, only the first can matter.
func (s *scope) typeNames(usable []string, restricted, hardware bool) []string {
	asked := map[string]bool{}
	for _, name := range s.services {
		limits := s.Template.Constraints.Services[name]
		names := limits.ImageTypes
		if hardware {
			names = limits.HardwareTypes
		}
		for _, n := range names {
			asked[n] = true
		}
	}
	for _, n := range s.Existing {
		if hardware {
			asked[n.HardwareType] = true
		} else {
			asked[n.ImageType] = true
		}
	}
	var out []string
	free := false
	for i, name := range usable {
		if i == 0 || asked[name] || !free {
			out = append(out, name)
			free = free || !asked[name]
		}
		delete(asked, name)
	}
	if !restricted {
		out = append(out, sortedKeys(asked)...)
	}
	return out
}

// group makes blocks of the services that have constraints, and returns the block of each service.
func (p *problem) group(on func(ruleKind, string, int) bool) map[string]int {
	root := map[string]string{}
	for _, name := range p.services {
		if !slices.Contains(p.everywhere, name) {
			root[name] = name
		}
	}
	find := func(name string) string {
		for root[name] != name {
			name = root[name]
		}
		return name
	}
	for i, names := range p.must {
		if on(ruleMust, "", i) {
			for _, name := range names[1:] {
				a, b := find(names[0]), find(name)
				root[max(a, b)] = min(a, b)
			}
		}
	}
	blockOf := map[string]int{}
	for _, name := range p.services { // sorted: a block is numbered by the first of its services
		if root[name] == "" {
			continue
		}
		first := find(name)
		if first == name {
			blockOf[name] = len(p.blocks)
			p.blocks = append(p.blocks, block{})
		}
		blockOf[name] = blockOf[first]
		b := &p.blocks[blockOf[name]]
		b.services = append(b.services, name)
	}
	return blockOf
}

func (p *problem) limits(b *block, on func(ruleKind, string, int) bool) {
	b.most = catalogue.MaxSize
	b.hardware, b.image = full(len(p.hardwareNames)), full(len(p.imageNames))
	for _, name := range b.services {
		q := p.quantities(name)
		if on(ruleMin, name, 0) {
			b.need = max(b.need, q.Min)
		}
		if on(ruleMax, name, 0) {
			b.most = min(b.most, q.Max)
		}
		limits := p.Template.Constraints.Services[name]
		if len(limits.HardwareTypes) > 0 && on(ruleHardware, name, 0) {
			b.hardware = b.hardware.and(numbers(p.hardwareNames, limits.HardwareTypes))
		}
		if len(limits.ImageTypes) > 0 && on(ruleImage, name, 0) {
			b.image = b.image.and(numbers(p.imageNames, limits.ImageTypes))
		}
	}
}

// clashes finds the pairs of blocks that no node can have both of, and the groups of blocks that all clash.
func (p *problem) clashes() {
	p.clash = make([]set, len(p.blocks))
	p.apartOf = make([][]set, len(p.blocks))
	for _, s := range p.apart {
		for b := range s.all {
			if s.size() == 2 {
				p.clash[b] = p.clash[b].or(s.without(b))
			} else {
				p.apartOf[b] = append(p.apartOf[b], s.without(b))
			}
		}
	}
	for a := range p.blocks {
		for b := range p.blocks[:a] {
			if !p.blocks[a].hardware.meets(p.blocks[b].hardware) || !p.blocks[a].image.meets(p.blocks[b].image) {
				p.clash[a].add(b)
				p.clash[b].add(a)
			}
		}
	}
	const enough = 120
	var grow func(clique, may, done set)
	grow = func(clique, may, done set) {
		if len(p.cliques) >= enough {
			return
		}
		if may.empty() && done.empty() && clique.size() > 1 {
			p.cliques = append(p.cliques, clique)
			return
		}
		pivot, best := -1, -1
		for b := range may.or(done).all {
			if n := p.clash[b].and(may).size(); n > best {
				pivot, best = b, n
			}
		}
		if pivot < 0 {
			return
		}
		for b := range may.minus(p.clash[pivot]).all {
			grow(clique.with(b), may.and(p.clash[b]), done.and(p.clash[b]))
			may, done = may.without(b), done.with(b)
		}
	}
	grow(set{}, full(len(p.blocks)), set{})
}

// separate finds the parts. All blocks that need certain hardware or images belong together.
func (p *problem) separate() {
	together := slices.Clone(p.apart)
	var hardware, image set
	for b := range p.blocks {
		together = append(together, setOf(b), p.clash[b].with(b))
		if p.blocks[b].hardware != full(len(p.hardwareNames)) {
			hardware.add(b)
		}
		if p.blocks[b].image != full(len(p.imageNames)) {
			image.add(b)
		}
	}
	for _, group := range append(together, hardware, image) {
		if group.empty() {
			continue
		}
		p.parts = slices.DeleteFunc(p.parts, func(part set) bool {
			if !part.meets(group) {
				return false
			}
			group = group.or(part)
			return true
		})
		p.parts = append(p.parts, group)
	}
}

// classes groups the nodes that exist, and describes the new ones.
func (p *problem) classes(on func(ruleKind, string, int) bool, blockOf map[string]int, may set) {
	type like struct{ base, hardware, image set }
	at := map[like]int{}
	order := make([]int, len(p.Existing))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return p.Existing[a].Number - p.Existing[b].Number })
	for _, i := range order {
		n := p.Existing[i]
		l := like{hardware: full(len(p.hardwareNames)), image: full(len(p.imageNames))}
		if on(ruleKeepHardware, n.HardwareType, 0) {
			l.hardware = numbers(p.hardwareNames, []string{n.HardwareType})
		}
		if on(ruleKeepImage, n.ImageType, 0) {
			l.image = numbers(p.imageNames, []string{n.ImageType})
		}
		for _, name := range n.Services {
			b, found := blockOf[name]
			if !found {
				continue
			}
			p.blocks[b].old = true
			if on(ruleKeepService, name, 0) {
				l.base.add(b)
			}
		}
		c, found := at[l]
		if !found {
			c = len(p.existing)
			at[l] = c
			p.existing = append(p.existing, class{
				base: l.base, may: may.minus(l.base), hardware: l.hardware, image: l.image,
			})
		}
		p.existing[c].n++
		p.existing[c].nodes = append(p.existing[c].nodes, i)
	}
	p.fresh = class{may: may, hardware: full(len(p.hardwareNames)), image: full(len(p.imageNames)), fresh: true}
	if p.HardwareType != "" && on(ruleNewHardware, "", 0) {
		p.fresh.hardware = numbers(p.hardwareNames, []string{p.HardwareType})
	}
	if p.ImageType != "" && on(ruleNewImage, "", 0) {
		p.fresh.image = numbers(p.imageNames, []string{p.ImageType})
	}
}

// types returns what hardware and images a node of the class can have with these blocks.
func (p *problem) types(c *class, blocks set) (hardware, image set) {
	hardware, image = c.hardware, c.image
	for b := range blocks.all {
		hardware, image = hardware.and(p.blocks[b].hardware), image.and(p.blocks[b].image)
	}
	return hardware, image
}

// valid reports whether a node of the class can have these blocks.
func (p *problem) valid(c *class, blocks set) bool {
	if blocks.meets(p.never) {
		return false
	}
	for b := range blocks.all {
		if blocks.meets(p.clash[b]) {
			return false
		}
		for _, others := range p.apartOf[b] {
			if blocks.holds(others) {
				return false
			}
		}
	}
	hardware, image := p.types(c, blocks)
	return !hardware.empty() && !image.empty()
}

// fits reports whether a node of the class that validly has these blocks can get another one.
func (p *problem) fits(c *class, blocks set, b int) bool {
	if !c.may.has(b) || blocks.has(b) || blocks.meets(p.clash[b]) {
		return false
	}
	for _, others := range p.apartOf[b] {
		if blocks.holds(others) {
			return false
		}
	}
	hardware, image := p.types(c, blocks)
	return hardware.meets(p.blocks[b].hardware) && image.meets(p.blocks[b].image)
}

func full(n int) (s set) {
	for i := range min(n, capacity) {
		s.add(i)
	}
	return s
}

// numbers returns the numbers that names have in a list.
func numbers(list, names []string) (s set) {
	for i, name := range list[:min(len(list), capacity)] {
		if slices.Contains(names, name) {
			s.add(i)
		}
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
