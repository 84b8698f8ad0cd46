package syntax

// RenderRepr renders a node as the reference shows it in a list of nodes, such as the statements
// that were not executed.
func RenderRepr(n Node) string {
	var r renderer
	r.repr(n)
	return r.String()
}
