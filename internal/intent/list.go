package intent

// ListQuery asks for one page of a list. Every list of the API and the console
// is paged, sorted and filtered by the store, in this form (API.md, Paging).
type ListQuery struct {
	Limit  int // 1 to 1000; 0 means 1000
	Sort   string
	Desc   bool
	After  *Bound // strictly above this place (API: start, first_id)
	Before *Bound // strictly below this place (API: end, last_id); at most one of both
	// Filters holds the values per key: several values are alternatives,
	// several keys must all hold. The store refuses keys that it does not know.
	Filters map[string][]string
	// Total is how many there are in all, where the caller has just counted them;
	// 0: the store counts. It is for a page without bounds.
	Total int
}

// Bound is a place in a sorted list: the value of the sort column in text form
// and the id that makes it unique. A nil value stands for NULL.
type Bound struct {
	Value *string
	ID    string
}

// Page is one page of a list and where it lies in the whole.
type Page[T any] struct {
	Items  []T
	Total  int // rows that match the filters
	Before int // rows of those before this page
	After  int // rows of those after it
}
