// Package forges tells how a whole server deals with repositories and the forges
// that hold them: webhooks, pull requests, promotions, gates and freezes, and
// repositories that are gone, empty, rewritten, protected or hostile.
package forges
