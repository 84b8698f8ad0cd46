// Package folders has the stories of `ordain deploy`: a project folder that is deployed without a server. It holds
// tests only.
package folders
