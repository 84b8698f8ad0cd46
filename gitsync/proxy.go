package gitsync

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
)

// parseProxy parses the URL of a proxy. It returns nil for an empty text.
func parseProxy(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err == nil && u.Hostname() != "" {
		switch u.Scheme {
		case "http", "https", "socks5", "socks5h":
			return u, nil
		}
	}
	// The error of url.Parse would quote the URL with its password.
	return nil, fault.New("gitsync.Proxy", fault.Invalid, "the setting git_proxy is not the URL of a proxy").
		Hint("write it as http://host:port, https://host:port or socks5://host:port")
}

// dialTimeout is how long connecting may take.
const dialTimeout = 15 * time.Second

// dialThrough connects to an address, through the proxy at the URL raw unless that is empty.
func dialThrough(ctx context.Context, within *reach.Rules, raw, address string) (net.Conn, error) {
	direct := reach.Dialer{Rules: within, Timeout: dialTimeout}
	via, err := parseProxy(raw)
	if err != nil {
		return nil, err
	}
	if via == nil {
		return direct.DialContext(ctx, "tcp", address)
	}
	if via.Scheme == "socks5" || via.Scheme == "socks5h" {
		dialer, err := proxy.FromURL(via, direct)
		if err != nil {
			return nil, err
		}
		return dialer.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
	}
	return dialConnect(ctx, direct, via, address)
}

// dialConnect opens a tunnel through an HTTP proxy.
func dialConnect(ctx context.Context, direct reach.Dialer, via *url.URL, address string) (net.Conn, error) {
	port := via.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[via.Scheme]
	}
	conn, err := direct.DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), port))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if via.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12})
	}
	req := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: address},
		Host:   address,
		Header: http.Header{},
	}
	if via.User != nil {
		password, _ := via.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(via.User.Username() + ":" + password))
		req.Header.Set("Proxy-Authorization", "Basic "+credentials)
	}
	r := bufio.NewReader(conn)
	err = req.Write(conn)
	var res *http.Response
	if err == nil {
		res, err = http.ReadResponse(r, req)
	}
	if err == nil && res.StatusCode != http.StatusOK {
		err = fault.New("gitsync.Proxy", fault.Unavailable,
			fmt.Sprintf("the proxy %s answered with HTTP status %d", via.Host, res.StatusCode)).
			Hint("check the setting git_proxy, and that the proxy allows connections to " + address)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &buffered{conn, r}, nil
}

// buffered is a connection from which some bytes have been read ahead.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }
