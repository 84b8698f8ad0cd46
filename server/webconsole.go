package server

import (
	"net/http"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/webconsole"
)

// webConsole returns what answers below /console/: the web console whose files the options name or, without one, the
// way to our own console. A folder that somebody chose and that has no console is worth a warning.
func (s *Server) webConsole() http.Handler {
	ours := http.RedirectHandler("/", http.StatusFound)
	o := s.cfg.Options
	if !o.WebConsole {
		return ours
	}
	c, err := webconsole.New(webconsole.Config{
		Folder: o.WebConsolePath, Features: o.WebConsoleFeatures, Login: o.Auth != config.AuthOff,
	})
	if err != nil {
		if !fault.Is(err, fault.NotFound) || o.WebConsolePath != config.DefaultWebConsole {
			s.log.Warn("the web console is not served", "error", err)
		}
		return ours
	}
	s.undo = append(s.undo, func() { _ = c.Close() })
	return c
}
