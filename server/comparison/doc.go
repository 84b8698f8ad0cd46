// Package comparison lets pages show comparisons of tens of thousands of resources:
//
//	two versions, or a dry run ─▶ one narrow read of the store ─▶ Index, kept in memory
//	Index ─▶ counts by type and agent · equal changes as one group · the resources that a filter chooses
//	      └▶ the store, for the full differences of the 50 that a page shows
//
// Versions never change, and neither does what a dry run found once it has ended, so the index of a comparison is made
// once. A bounded number of them is kept. The values of attributes are not kept: they are only looked at to find equal
// changes.
package comparison
