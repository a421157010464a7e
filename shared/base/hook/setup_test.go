package hook_test

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
)

// pausing is a clock on which pauses take no time. Longer timers fire only by Advance.
type pausing struct {
	*clock.Virtual
	mu     sync.Mutex
	pauses []time.Duration
}

func (c *pausing) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	fired, stop := c.Virtual.NewTimer(d)
	if d <= hook.MaxPause {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pauses = append(c.pauses, d)
		c.Advance(d)
	}
	return fired, stop
}

// receiver is an HTTPS server on loopback and a client that is permitted to reach it.
type receiver struct {
	*testing.T
	*httptest.Server
	clock  *pausing
	client *hook.Client
	sender *hook.Sender
	names  *names

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// receive starts a receiver. answer writes the response to the n-th request, from 1.
func receive(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request), allow ...string) *receiver {
	t.Helper()
	r := &receiver{T: t, clock: &pausing{Virtual: clock.NewVirtual(epoch)}, names: &names{}}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.requests, r.bodies = append(r.requests, request), append(r.bodies, string(body))
		n := len(r.requests)
		r.mu.Unlock()
		answer(n, w, request)
	}))
	r.Server.Config.ErrorLog = nil
	t.Cleanup(r.Close)
	if len(allow) == 0 {
		allow = []string{"127.0.0.1"}
	}
	policy, err := guard.Policy{}.WithRules(allow...)
	if err != nil {
		t.Fatal(err)
	}
	r.replace(policy)
	return r
}

// replace gives the client another policy.
func (r *receiver) replace(policy guard.Policy) {
	roots := x509.NewCertPool()
	roots.AddCert(r.Certificate())
	config := hook.Config{Policy: policy.WithPlainLoopback(), Clock: r.clock, RootCAs: roots, Resolver: r.names.resolver()}
	r.client, r.sender = hook.New(config), hook.NewSender(config)
}

// post sends a message to a path of the receiver and returns the answer.
func (r *receiver) post(m hook.Message) hook.Answer {
	r.Helper()
	if !strings.Contains(m.URL, "://") {
		m.URL = r.URL + m.URL
	}
	if m.Body == nil {
		m.Body = []byte(`{}`)
	}
	a, err := r.client.Post(r.Context(), m)
	if err != nil {
		r.Fatal(err)
	}
	return a
}

// within returns a context whose deadline is d ahead on the receiver's clock, but far ahead on
// the host's clock.
func (r *receiver) within(d time.Duration) (context.Context, context.CancelFunc) {
	const far = 1000 * 24 * time.Hour
	end := time.Now().Add(far).Truncate(time.Second)
	r.clock.Advance(end.Add(-d).Sub(r.clock.Now()))
	return context.WithDeadline(r.Context(), end)
}

// at returns the receiver's URL with another host.
func (r *receiver) at(host string) string {
	return strings.Replace(r.URL, "127.0.0.1", host, 1)
}

// names is a DNS server whose answers can differ between queries.
type names struct {
	mu      sync.Mutex
	queries int
	// addresses returns the addresses of every name for the n-th query, from 1.
	addresses func(n int) []string
}

// resolver returns a resolver that uses only this server, over in-memory connections.
func (s *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		server, client := net.Pipe()
		go s.serve(server)
		return client, nil
	}}
}

// serve answers one query. Each message follows its length, as over TCP.
func (s *names) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return
	}
	text := make([]byte, binary.BigEndian.Uint16(length[:]))
	var query dnsmessage.Message
	if _, err := io.ReadFull(c, text); err != nil || query.Unpack(text) != nil {
		return
	}
	answer := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: query.ID, Response: true, RecursionAvailable: true},
		Questions: query.Questions, Answers: s.records(query.Questions[0]),
	}
	packed, err := answer.Pack()
	if err != nil {
		return
	}
	_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...)) //nolint:gosec // G115: some bytes
}

func (s *names) records(q dnsmessage.Question) (list []dnsmessage.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Type == dnsmessage.TypeA {
		s.queries++
	}
	if s.addresses == nil {
		return nil
	}
	for _, text := range s.addresses(max(s.queries, 1)) {
		addr := netip.MustParseAddr(text)
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case q.Type == dnsmessage.TypeA && addr.Is4():
			list = append(list, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: addr.As4()}})
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			list = append(list, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	return list
}
