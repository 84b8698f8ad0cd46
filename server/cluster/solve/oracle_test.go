package solve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// oracle decides a small request by trying every layout. It shares no code with the solver: it reads the request, and
// rules that are off are those that it does not apply.
type oracle struct {
	r        Request
	off      map[key]bool
	services []string
}

func (o *oracle) on(kind ruleKind, name string, index int) bool {
	return !o.off[key{kind, name, index}]
}

func (o *oracle) constrained(name string) bool {
	c := o.r.Template.Constraints
	_, limited := c.Services[name]
	in := func(set []string) bool { return slices.Contains(set, name) }
	return limited || slices.ContainsFunc(c.Layout.MustCoexist, in) || slices.ContainsFunc(c.Layout.CantCoexist, in)
}

// shrunk are the sets as the rules number them: only those that matter count.
func (o *oracle) shrunk(sets [][]string, all bool) [][]string {
	var out [][]string
	for _, set := range sets {
		var present []string
		for _, name := range set {
			if slices.Contains(o.services, name) && !slices.Contains(present, name) {
				present = append(present, name)
			}
		}
		absent := func(n string) bool { return !slices.Contains(present, n) }
		if all && len(set) > 0 && !slices.ContainsFunc(set, absent) ||
			!all && len(present) > 1 {
			slices.Sort(present)
			if !slices.ContainsFunc(out, func(o []string) bool { return slices.Equal(o, present) }) {
				out = append(out, present)
			}
		}
	}
	return out
}

// nodeOK reports whether a node may look like this; fresh nodes also have what is asked of new ones.
func (o *oracle) nodeOK(n Node, fresh bool) bool {
	t := o.r.Template
	on := func(name string) bool { return slices.Contains(n.Services, name) }
	needsOne := true
	for _, name := range o.services {
		if !o.constrained(name) {
			needsOne = false
			if !on(name) {
				return false
			}
		}
	}
	if needsOne && len(n.Services) == 0 && o.on(ruleFilled, "", 0) {
		return false
	}
	for i, set := range o.shrunk(t.Constraints.Layout.MustCoexist, false) {
		has := 0
		for _, name := range set {
			if on(name) {
				has++
			}
		}
		if has > 0 && has < len(set) && o.on(ruleMust, "", i) {
			return false
		}
	}
	for i, set := range o.shrunk(t.Constraints.Layout.CantCoexist, true) {
		if !slices.ContainsFunc(set, func(s string) bool { return !on(s) }) && o.on(ruleCant, "", i) {
			return false
		}
	}
	for _, name := range n.Services {
		c := t.Constraints.Services[name]
		if len(c.HardwareTypes) > 0 && !slices.Contains(c.HardwareTypes, n.HardwareType) &&
			o.on(ruleHardware, name, 0) {
			return false
		}
		if len(c.ImageTypes) > 0 && !slices.Contains(c.ImageTypes, n.ImageType) && o.on(ruleImage, name, 0) {
			return false
		}
	}
	if o.on(ruleUsableHardware, "", 0) && !o.usable(o.r.Catalogue.HardwareTypes[n.HardwareType] != nil &&
		o.r.Catalogue.HardwareTypes[n.HardwareType].ProviderMap["p"] != nil,
		t.Compatibility.HardwareTypes, n.HardwareType) {
		return false
	}
	if o.on(ruleUsableImage, "", 0) && !o.usable(o.r.Catalogue.ImageTypes[n.ImageType] != nil &&
		o.r.Catalogue.ImageTypes[n.ImageType].ProviderMap["p"] != nil, t.Compatibility.ImageTypes, n.ImageType) {
		return false
	}
	if fresh && o.r.HardwareType != "" && n.HardwareType != o.r.HardwareType && o.on(ruleNewHardware, "", 0) {
		return false
	}
	return !fresh || o.r.ImageType == "" || n.ImageType == o.r.ImageType || !o.on(ruleNewImage, "", 0)
}

func (*oracle) usable(mapped bool, allowed []string, name string) bool {
	return mapped && (len(allowed) == 0 || slices.Contains(allowed, name))
}

var (
	hardwareTypes = []string{"h1", "h2", "h3"}
	imageTypes    = []string{"i1", "i2"}
)

// sets are the sets of services that a node may have; existing is nil for a new node.
func (o *oracle) sets(existing *Node) [][]string {
	var out [][]string
	for bits := range 1 << len(o.services) {
		var services []string
		for i, name := range o.services {
			if bits&(1<<i) != 0 {
				services = append(services, name)
			}
		}
		ok := false
		for _, h := range hardwareTypes {
			for _, im := range imageTypes {
				if existing != nil && (h != existing.HardwareType && o.on(ruleKeepHardware, existing.HardwareType, 0) ||
					im != existing.ImageType && o.on(ruleKeepImage, existing.ImageType, 0)) {
					continue
				}
				ok = ok || o.nodeOK(Node{Services: services, HardwareType: h, ImageType: im}, existing == nil)
			}
		}
		if existing != nil {
			for _, name := range existing.Services {
				if slices.Contains(o.services, name) && !slices.Contains(services, name) &&
					o.on(ruleKeepService, name, 0) {
					ok = false
				}
			}
		}
		if ok {
			out = append(out, services)
		}
	}
	return out
}

func (o *oracle) satisfiable() bool {
	o.services = slices.Clone(o.r.Services)
	if len(o.services) == 0 {
		o.services = slices.Clone(o.r.Template.Defaults.Services)
	}
	slices.Sort(o.services)
	sizes := o.r.Template.Constraints.Size
	least, most := max(sizes.Min, 1), sizes.Max
	if !o.on(ruleSizeMin, "", 0) {
		least = 1
	}
	if most == 0 || !o.on(ruleSizeMax, "", 0) {
		most = 6 // as many as such a small template can make a difference with
	}
	from, to := o.r.Size, o.r.Size
	if !o.on(ruleSize, "", 0) {
		from, to = least, most
	}
	for size := from; size <= to; size++ {
		if size < least || size > most && (o.r.Template.Constraints.Size.Max != 0 && o.on(ruleSizeMax, "", 0)) {
			continue
		}
		if o.atSize(size) {
			return true
		}
	}
	return false
}

func (o *oracle) atSize(size int) bool {
	counts := map[string]int{}
	count := func(set []string, n int) {
		for _, name := range set {
			counts[name] += n
		}
	}
	fits := func() bool {
		for _, name := range o.services {
			var q catalogue.Range
			if given := o.r.Template.Constraints.Services[name].Quantities; given != nil {
				q = *given
			}
			if counts[name] < max(q.Min, 1) && o.constrained(name) && o.on(ruleMin, name, 0) {
				return false
			}
			if q.Max > 0 && counts[name] > q.Max && o.on(ruleMax, name, 0) {
				return false
			}
		}
		return true
	}
	fresh := o.sets(nil)
	// mayAdd saves time: counts only grow.
	mayAdd := func(set []string) bool {
		return !slices.ContainsFunc(set, func(name string) bool {
			q := o.r.Template.Constraints.Services[name].Quantities
			return q != nil && q.Max > 0 && counts[name] >= q.Max && o.on(ruleMax, name, 0)
		})
	}
	var addFresh func(from, left int) bool
	addFresh = func(from, left int) bool {
		if left == 0 {
			return fits()
		}
		for i := from; i < len(fresh); i++ {
			if !mayAdd(fresh[i]) {
				continue
			}
			count(fresh[i], 1)
			ok := addFresh(i, left-1)
			count(fresh[i], -1)
			if ok {
				return true
			}
		}
		return false
	}
	options := make([][][]string, len(o.r.Existing))
	for i := range o.r.Existing {
		options[i] = o.sets(&o.r.Existing[i])
	}
	mayGo := max(len(o.r.Existing)-size, 0)
	var keep func(i, gone int) bool
	keep = func(i, gone int) bool {
		if i == len(o.r.Existing) {
			return gone == mayGo && addFresh(0, size-(len(o.r.Existing)-gone))
		}
		if gone < mayGo && keep(i+1, gone+1) {
			return true
		}
		for _, set := range options[i] {
			count(set, 1)
			ok := keep(i+1, gone)
			count(set, -1)
			if ok {
				return true
			}
		}
		return false
	}
	return keep(0, 0)
}

// smallRequest draws a request over a template with few services. About half of them have a layout.
func smallRequest(t *rapid.T, amend bool) Request {
	names := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "services")]
	some := func(of []string, label string) []string {
		var out []string
		for _, name := range of {
			if rapid.Bool().Draw(t, label+" "+name) {
				out = append(out, name)
			}
		}
		return out
	}
	cat := &catalogue.Catalogue{
		Providers: map[string]*catalogue.Provider{
			"mine": {Head: catalogue.Head{Name: "mine"}, ProviderType: "p"},
		},
		HardwareTypes: map[string]*catalogue.HardwareType{},
		ImageTypes:    map[string]*catalogue.ImageType{},
		Services:      map[string]*catalogue.Service{},
	}
	mapped := map[string]map[string]string{"p": {"flavor": "x", "image": "y"}}
	for i, name := range hardwareTypes {
		h := &catalogue.HardwareType{Head: catalogue.Head{Name: name}, ProviderMap: mapped}
		if i == 2 && rapid.Bool().Draw(t, "h3 unmapped") {
			h.ProviderMap = nil
		}
		cat.HardwareTypes[name] = h
	}
	for _, name := range imageTypes {
		cat.ImageTypes[name] = &catalogue.ImageType{Head: catalogue.Head{Name: name}, ProviderMap: mapped}
	}
	tm := &catalogue.Template{Head: catalogue.Head{Name: "t"}}
	tm.Compatibility.Services = names
	tm.Defaults = catalogue.Defaults{Services: names, Provider: "mine", HardwareType: "h1", ImageType: "i1"}
	tm.Constraints.Services = map[string]catalogue.ServiceConstraint{}
	tm.Constraints.Size.Min = rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "min size")
	tm.Constraints.Size.Max = rapid.SampledFrom([]int{0, 0, 0, 4, 2}).Draw(t, "max size")
	for _, name := range names {
		cat.Services[name] = &catalogue.Service{Head: catalogue.Head{Name: name}}
		if rapid.IntRange(0, 3).Draw(t, "free "+name) == 0 {
			continue
		}
		var c catalogue.ServiceConstraint
		if rapid.Bool().Draw(t, "counted "+name) {
			c.Quantities = &catalogue.Range{
				Min: rapid.IntRange(0, 3).Draw(t, "min "+name),
				Max: rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "max "+name),
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "particular "+name) == 0 {
			c.HardwareTypes = some(hardwareTypes, "hardware of "+name)
		}
		if rapid.IntRange(0, 3).Draw(t, "images "+name) == 0 {
			c.ImageTypes = some(imageTypes, "images of "+name)
		}
		tm.Constraints.Services[name] = c
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "musts") {
		tm.Constraints.Layout.MustCoexist = append(tm.Constraints.Layout.MustCoexist,
			some(names, fmt.Sprint("must ", i)))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "cants") {
		pair := []string{rapid.SampledFrom(names).Draw(t, fmt.Sprint("cant ", i)),
			rapid.SampledFrom(names).Draw(t, fmt.Sprint("nor ", i))}
		if rapid.IntRange(0, 4).Draw(t, fmt.Sprint("triple ", i)) == 0 {
			pair = append(pair, rapid.SampledFrom(names).Draw(t, fmt.Sprint("third ", i)))
		}
		if pair[0] != pair[1] || rapid.IntRange(0, 9).Draw(t, fmt.Sprint("nowhere ", i)) == 0 {
			tm.Constraints.Layout.CantCoexist = append(tm.Constraints.Layout.CantCoexist, pair)
		}
	}
	r := Request{Template: tm, Catalogue: cat, Size: rapid.IntRange(1, 4).Draw(t, "size")}
	if rapid.IntRange(0, 3).Draw(t, "fewer services") == 0 {
		r.Services = some(names, "wanted")
	}
	if rapid.IntRange(0, 5).Draw(t, "hardware") == 0 {
		r.HardwareType = "h2"
	}
	if rapid.IntRange(0, 5).Draw(t, "image") == 0 {
		r.ImageType = "i2"
	}
	if amend {
		for i := range rapid.IntRange(1, 3).Draw(t, "existing") {
			r.Existing = append(r.Existing, Node{
				Number: 1000 + i*rapid.IntRange(1, 2).Draw(t, "gap"), Services: some(names, "old"),
				HardwareType: rapid.SampledFrom(hardwareTypes).Draw(t, "old hardware"),
				ImageType:    rapid.SampledFrom(imageTypes).Draw(t, "old image"),
			})
		}
		slices.SortFunc(r.Existing, func(a, b Node) int { return a.Number - b.Number })
		r.Existing = slices.CompactFunc(r.Existing, func(a, b Node) bool { return a.Number == b.Number })
	}
	return r
}

// Whatever the constraints: there is a layout if and only if trying all of them finds one, it passes the checker,
// it comes out the same again, and the reasons against one are the fewest.
func testAgainstOracle(t *rapid.T, r Request) (solved bool) {
	nodes, err := Layout(context.Background(), r)
	want := (&oracle{r: r}).satisfiable()
	if err == nil {
		if wrong := Check(r, nodes); len(wrong) > 0 {
			t.Fatalf("the layout %v is wrong:\n%s", nodes, strings.Join(wrong, "\n"))
		}
		if !want {
			t.Fatalf("the oracle finds no layout, and yet there is %v", nodes)
		}
		again, err := Layout(context.Background(), r)
		if err != nil || fmt.Sprint(nodes) != fmt.Sprint(again) {
			t.Fatalf("the second time, the layout was %v (%v) instead of %v", again, err, nodes)
		}
		return true
	}
	var c *Contradiction
	if !errors.As(err, &c) {
		t.Fatal(err)
	}
	if want {
		t.Fatalf("the oracle finds a layout, but: %s", c)
	}
	if len(c.Reasons) == 0 || c.Hint == "" {
		t.Fatalf("there is no reason or no hint: %+v", c)
	}
	s, static := newScope(r)
	if static != nil {
		return false
	}
	// Only the rules that are named count: they contradict each other, and without any one they do not.
	off := map[key]bool{}
	for _, rule := range s.rules() {
		if !slices.Contains(c.Reasons, rule.text) {
			off[rule.key()] = true
		}
	}
	if (&oracle{r: r, off: off}).satisfiable() {
		t.Fatalf("these reasons do not contradict each other:\n%s", c)
	}
	for _, rule := range s.rules() {
		if k := rule.key(); !off[k] {
			off[k] = true
			if !(&oracle{r: r, off: off}).satisfiable() {
				t.Fatalf("%q could be left out of:\n%s", rule.text, c)
			}
			delete(off, k)
		}
	}
	return false
}

func TestLayoutAgreesWithTryingEverything(t *testing.T) {
	solved, all := 0, 0
	for range 20 { // rapid makes 100 requests each time
		rapid.Check(t, func(t *rapid.T) {
			all++
			if testAgainstOracle(t, smallRequest(t, false)) {
				solved++
			}
		})
	}
	if solved < all/10 || solved > all*9/10 {
		t.Errorf("%d of %d requests have a layout: the test is not balanced", solved, all)
	}
}

func TestAmendmentsAgreeWithTryingEverything(t *testing.T) {
	for range 8 {
		rapid.Check(t, func(t *rapid.T) { testAgainstOracle(t, smallRequest(t, true)) })
	}
}
