// Package people knows who may log in: users, their passwords, their sessions, and the roles that are bound to them.
//
//	Login ─▶ count the attempt ─▶ argon2id ─▶ a session in the store ─▶ its token: a cookie, or a bearer token
//	request ─▶ token ─▶ session ─▶ user ─▶ bindings ─▶ access.Principal, kept for a moment
//
// The store keeps a hash of each password, session token and link, and nothing that would let its reader log in. The
// token of the console is a cookie and counts only for pages; the token of the API is sent in the header Authorization
// and counts only there, so that no web page can make a browser use the API.
//
// Sessions are handled by scs, which makes and renews tokens and writes the cookie. They end when nobody used them for
// a while, at their deadline, at a logout, and when the user's password changes or the user is disabled.
package people
