package mail

import (
	"crypto/tls"
	"io"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
)

// Message is a received message.
type Message struct {
	From, To, Subject, ID, Text string
}

// Server is a mail server that keeps its messages. It requires STARTTLS.
type Server struct {
	// Port is its port of 127.0.0.1.
	Port int

	mu       sync.Mutex
	messages []Message
}

// Serve starts a server with a certificate until the test ends.
func Serve(t *testing.T, certificate *tls.Certificate) *Server {
	t.Helper()
	s := &Server{}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{t: t, of: s, conn: c}, nil }))
	server.Domain = "mail.example.org"
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	t.Cleanup(func() { _ = server.Close() })
	s.Port = listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	return s
}

// Messages returns the received messages.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.messages...)
}

// session is a dialogue with a client.
type session struct {
	t    *testing.T
	of   *Server
	conn *smtp.Conn
	next Message
}

// Mail implements smtp.Session.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if _, encrypted := s.conn.TLSConnectionState(); !encrypted {
		return &smtp.SMTPError{Code: 530, Message: "STARTTLS first"}
	}
	s.next = Message{From: from}
	return nil
}

// Rcpt implements smtp.Session.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.next.To = strings.TrimSpace(s.next.To + " " + to)
	return nil
}

// Data implements smtp.Session.
func (s *session) Data(r io.Reader) error {
	m, err := netmail.ReadMessage(r)
	if err != nil {
		s.t.Errorf("malformed message: %v", err)
		return err
	}
	text, err := io.ReadAll(m.Body)
	s.next.Subject, s.next.ID, s.next.Text = m.Header.Get("Subject"), m.Header.Get("Message-Id"), string(text)
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.messages = append(s.of.messages, s.next)
	return err
}

// Reset implements smtp.Session.
func (s *session) Reset() {}

// Logout implements smtp.Session.
func (s *session) Logout() error { return nil }
