package intent

// ListQuery asks for one page of a list. Every list of the API and the console
// is paged, sorted and filtered by the store, in this form (API.md, Paging).
type ListQuery struct {
	Limit  int // 1 to 1000; 0 means 1000
	Sort   string
	Desc   bool
	After  *Bound // strictly above this place (API: start, first_id)
	Before *Bound // strictly below this place (API: end, last_id); at most one of both
	// Filters holds the values by key. Several values of a key are alternatives; all
	// keys must match. The store rejects unknown keys.
	Filters map[string][]string
	// Total is how many items there are, if the caller has just counted them; 0 lets the
	// store count. It may only be set for a page without bounds.
	Total int
}

// Bound is a position in a sorted list: the value of the sort column as text, and the
// id that makes it unique. A nil value stands for NULL.
type Bound struct {
	Value *string
	ID    string
}

// Page is a page of a list, and its position in the list.
type Page[T any] struct {
	Items  []T
	Total  int // rows that match the filters
	Before int // matching rows before this page
	After  int // matching rows after this page
}
