package module

// deepestValue is how many collections a value of aliases may have in each
// other, so that whoever walks through it comes to an end soon.
const deepestValue = 2000

// untangle takes collections out of themselves, and those that aliases make too
// deep. A project has no use for either.
func untangle(root value) {
	type step struct {
		in     *value
		id     any
		slots  []*value
		height int
	}
	open := map[any]bool{}
	heights := map[any]int{} // of what was walked through
	var stack []step
	push := func(v *value) {
		id, slots := within(v)
		if id == nil {
			return
		}
		if h, known := heights[id]; known {
			if h >= deepestValue {
				v.is = tangle{v.is}
				h = 0
			}
			if len(stack) > 0 {
				stack[len(stack)-1].height = max(stack[len(stack)-1].height, h+1)
			}
			return
		}
		if open[id] {
			v.is = tangle{v.is}
			return
		}
		open[id] = true
		stack = append(stack, step{in: v, id: id, slots: slots})
	}
	push(&root)
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.slots) > 0 {
			next := top.slots[0]
			top.slots = top.slots[1:]
			push(next)
			continue
		}
		done := *top
		stack = stack[:len(stack)-1]
		delete(open, done.id)
		heights[done.id] = done.height
		push(done.in) // its height is known now
	}
}

// within gives what a collection holds, and what it is known by; nil if it holds
// nothing.
func within(v *value) (id any, slots []*value) {
	switch is := v.is.(type) {
	case []value:
		for i := range is {
			slots = append(slots, &is[i])
		}
		if len(is) > 0 {
			return &is[0], slots
		}
	case *tuple:
		return is, []*value{&is.key, &is.value}
	case *mapping:
		for i := range is.values {
			slots = append(slots, &is.values[i])
		}
		if len(slots) > 0 {
			return is, slots
		}
	}
	return nil, nil
}
