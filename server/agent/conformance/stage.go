package conformance

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
)

// stage is the agent server that the suite plays. It does what the checks say, and nothing by itself but pings.
type stage struct {
	authority *ca.Authority
	url       string
	who       ca.Identity
	server    *http.Server

	mu      sync.Mutex
	token   protocol.JoinToken
	joins   []protocol.JoinRequest // that were answered with a certificate
	asked   int                    // requests to join, whatever their outcome
	refuse  *protocol.Refusal      // what connections are answered with; nil: they are accepted
	used    map[string]bool        // serial numbers of certificates that agents connected with
	signed  []ca.Issued
	welcome func(*protocol.WelcomeMessage) // changes the welcome; may be nil
	refused int                            // connections

	links chan *link
}

func newStage() (*stage, error) {
	certificate, key, err := ca.Make(time.Now())
	if err != nil {
		return nil, err
	}
	s := &stage{
		who:   ca.Identity{Environment: uuid.New(), Agent: "conformance/agent 1"},
		links: make(chan *link, 16), used: map[string]bool{},
	}
	if s.authority, err = ca.Open(certificate, key); err != nil {
		return nil, err
	}
	own, err := s.authority.SignServer([]string{"127.0.0.1", "localhost"}, time.Now())
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.url = "https://" + l.Addr().String()
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+protocol.AuthorityPath, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, s.authority.PEM())
	})
	routes.HandleFunc("POST "+protocol.JoinPath, s.join)
	routes.HandleFunc("GET "+protocol.SubscribePath, s.subscribe)
	s.server = &http.Server{
		Handler: routes, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert, NextProtos: []string{"http/1.1"},
		},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	s.newToken()
	go func() { _ = s.server.ServeTLS(l, "", "") }() // until close
	return s, nil
}

func (s *stage) close() { _ = s.server.Close() }

// newToken replaces the join token.
func (s *stage) newToken() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = protocol.JoinToken{
		URL: s.url, ID: uuid.NewString(), Secret: base64.RawURLEncoding.EncodeToString(secret), CA: s.authority.Hash(),
	}
	return s.token.String()
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(protocol.Refusal{Message: message, Reason: reason})
}

func (s *stage) join(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	var body protocol.JoinRequest
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "request", "the body is not the JSON of a request to join: "+err.Error())
		return
	}
	token, err := protocol.ParseToken(body.Token)
	switch {
	case err != nil:
		refuse(w, http.StatusForbidden, "unknown", err.Error())
		return
	case token != s.token:
		refuse(w, http.StatusForbidden, "used", "this join token was used")
		return
	}
	issued, err := s.authority.SignAgent(body.Request, s.who, time.Now(), 24*time.Hour)
	if err != nil {
		refuse(w, http.StatusBadRequest, "request", err.Error())
		return
	}
	s.token = protocol.JoinToken{}
	s.joins, s.signed = append(s.joins, body), append(s.signed, issued)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(protocol.JoinAnswer{
		Certificate: issued.PEM, CA: s.authority.PEM(), Environment: s.who.Environment.String(), Agent: s.who.Agent,
		URL: s.url,
	})
}

func (s *stage) identify(r *http.Request) error {
	if len(r.TLS.PeerCertificates) == 0 {
		return errors.New("there is no certificate")
	}
	who, serial, err := s.authority.Identify(r.TLS.PeerCertificates[0], time.Now())
	if err == nil && who != s.who {
		err = errors.New("the certificate is of another agent")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[serial] = true
	return err
}

func (s *stage) subscribe(w http.ResponseWriter, r *http.Request) {
	if err := s.identify(r); err != nil {
		refuse(w, http.StatusForbidden, "certificate", err.Error())
		return
	}
	s.mu.Lock()
	refusal := s.refuse
	if refusal != nil {
		s.refused++
	}
	s.mu.Unlock()
	if refusal != nil {
		refuse(w, http.StatusForbidden, refusal.Reason, refusal.Message)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol.Subprotocol}})
	if err != nil {
		return
	}
	ws.SetReadLimit(protocol.MaxMessage + 1)
	l := &link{ws: ws, stage: s, ended: make(chan struct{}), changed: make(chan struct{}, 1)}
	select {
	case s.links <- l:
	default:
		_ = ws.CloseNow()
		return
	}
	l.read() // until the connection ends
}

// link is a connection of the agent.
type link struct {
	ws    *websocket.Conn
	stage *stage

	mu       sync.Mutex
	messages []any // that no check has looked at
	broken   error // the first message that breaks the protocol
	raw      int   // bytes of the largest message
	changed  chan struct{}
	ended    chan struct{}
}

func (l *link) read() {
	defer close(l.ended)
	for {
		kind, data, err := l.ws.Read(context.Background())
		if err != nil {
			return
		}
		var m any
		if kind != websocket.MessageText {
			err = errors.New("a message is in a binary frame")
		} else {
			m, err = protocol.DecodeFromAgent(data)
		}
		l.mu.Lock()
		l.raw = max(l.raw, len(data))
		if err != nil && l.broken == nil {
			l.broken = err
		}
		if m != nil {
			l.messages = append(l.messages, m)
		}
		l.mu.Unlock()
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
}

// send sends a message.
func (l *link) send(ctx context.Context, message any) error {
	data, ok := message.([]byte)
	if !ok {
		var err error
		if data, err = protocol.Encode(message); err != nil {
			return err
		}
	}
	if err := l.ws.Write(ctx, websocket.MessageText, data); err != nil {
		return fmt.Errorf("the agent closed the connection: %w", err)
	}
	return nil
}

// cut ends the connection as a network does: without a word.
func (l *link) cut() { _ = l.ws.CloseNow(); <-l.ended }

// await returns the first message that accept accepts, and removes it; others stay. what names it for people.
func await[M any](ctx context.Context, l *link, what string, accept func(*M) bool) (*M, error) {
	for {
		l.mu.Lock()
		if l.broken != nil {
			l.mu.Unlock()
			return nil, fmt.Errorf("a message of the agent breaks the protocol: %w", l.broken)
		}
		for i, m := range l.messages {
			if found, ok := m.(*M); ok && (accept == nil || accept(found)) {
				l.messages = append(l.messages[:i], l.messages[i+1:]...)
				l.mu.Unlock()
				return found, nil
			}
		}
		l.mu.Unlock()
		select {
		case <-l.changed:
		case <-l.ended:
			l.mu.Lock()
			left := len(l.messages)
			l.mu.Unlock()
			if left > 0 {
				if m, err := last(l, accept); err == nil {
					return m, nil
				}
			}
			return nil, errors.New("the agent closed the connection, instead of " + what)
		case <-ctx.Done():
			return nil, errors.New("the agent did not send " + what + " in time")
		}
	}
}

// last looks once more at the messages of a connection that has ended.
func last[M any](l *link, accept func(*M) bool) (*M, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, m := range l.messages {
		if found, ok := m.(*M); ok && (accept == nil || accept(found)) {
			l.messages = append(l.messages[:i], l.messages[i+1:]...)
			return found, nil
		}
	}
	return nil, errors.New("there is no such message")
}
