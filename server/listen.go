package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// listen listens on an address. Its error says in words that a port is in use.
func listen(address string, port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.New("server.listen", fault.Conflict,
			fmt.Sprintf("the port %d of %s is in use by another program", port, address)).
			Hint("stop that program, or take another port: --port, [server] bind-port; 0 takes any free one")
	case errors.Is(err, syscall.EACCES):
		return nil, fault.New("server.listen", fault.Forbidden,
			fmt.Sprintf("this user may not listen on port %d", port)).
			Hint("take a port above 1023: --port, [server] bind-port")
	case err != nil:
		return nil, fault.Wrap("server.listen", fault.Invalid, err).Say("cannot listen on " + address)
	}
	return l, nil
}

// serve answers requests until ctx ends, with HTTPS when s has a TLSConfig. Then it gives them a few seconds to finish;
// live streams end with ctx.
func serve(ctx context.Context, l net.Listener, s *http.Server) error {
	s.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan error, 1)
	go func() {
		if s.TLSConfig != nil {
			ended <- s.ServeTLS(l, "", "") // plain HTTP gets 400: "Client sent an HTTP request to an HTTPS server."
			return
		}
		ended <- s.Serve(l)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(grace); err != nil {
		_ = s.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
