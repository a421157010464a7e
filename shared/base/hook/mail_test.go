package hook_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/sortie-dev/sortie/shared/base/hook"
)

// mailbox is a mail server that keeps its messages.
type mailbox struct {
	mu       sync.Mutex
	messages []string
	to       []string
	// refusal answers RCPT; nil accepts all.
	refusal *smtp.SMTPError
}

const mailPassword = "s3cret of the mailbox"

// session is a dialogue with a mailbox.
type session struct {
	box    *mailbox
	signed bool
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, name, password string) error {
		if name != "reports" || password != mailPassword {
			return &smtp.SMTPError{Code: 535, Message: "no such password: " + password}
		}
		s.signed = true
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if !s.signed {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.box.refusal != nil {
		return s.box.refusal
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	s.box.to = append(s.box.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	s.box.messages = append(s.box.messages, string(text))
	return err
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

// serve starts the mailbox on loopback, with the certificate of the receiver unless plain, and
// returns its port.
func (b *mailbox) serve(r *receiver, plain bool) int {
	r.Helper()
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{box: b}, nil }))
	server.Domain = "mail.example.org"
	if !plain {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: r.TLS.Certificates}
	}
	listener, err := (&net.ListenConfig{}).Listen(r.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	r.Cleanup(func() { _ = server.Close() })
	return listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
}

func message(port int) hook.Mail {
	return hook.Mail{
		Host: "127.0.0.1", Port: port, Username: "reports", Password: mailPassword, From: "Reports <reports@example.org>",
		To: []string{"ops@example.org", "Ana <ana@example.org>"}, Subject: "Nächte\r\nBcc: evil@example.org", Text: "line one\n.\nline two", ID: "job_1-onFailure#2",
	}
}

func TestMailIsDelivered(t *testing.T) {
	t.Parallel()
	r, box := receive(t, nil), &mailbox{}
	answer, err := r.client.Mail(t.Context(), message(box.serve(r, false)))
	if err != nil || answer.Verdict != hook.Allowed || len(box.messages) != 1 {
		t.Fatalf("got %+v, %v and %d messages, want one", answer, err, len(box.messages))
	}
	if got := strings.Join(box.to, " "); got != "ops@example.org ana@example.org" {
		t.Errorf("got receivers %s", got)
	}
	m, err := mail.ReadMessage(strings.NewReader(box.messages[0]))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(m.Body)
	if m.Header.Get("Bcc") != "" || !strings.HasPrefix(m.Header.Get("Subject"), "=?utf-8?q?N=C3=A4chte") || m.Header.Get("Message-Id") != "<job_1-onFailure.2@example.org>" {
		t.Errorf("got header %v, want an encoded subject and no further receiver", m.Header)
	}
	if got := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")); got != "line one\n.\nline two" {
		t.Errorf("got text %q", got)
	}
}

// TestMailFailures checks what is refused and what is tried again, and that no answer has the
// password.
func TestMailFailures(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change  func(*hook.Mail)
		refusal *smtp.SMTPError
		plain   bool
		want    hook.Verdict
		detail  string
	}{
		"wrong password":    {func(m *hook.Mail) { m.Password += "!" }, nil, false, hook.Refused, "535 to AUTH"},
		"no encryption":     {nil, nil, true, hook.Refused, "no STARTTLS"},
		"unknown receiver":  {nil, &smtp.SMTPError{Code: 550, Message: "unknown"}, false, hook.Refused, "550 to RCPT"},
		"busy":              {nil, &smtp.SMTPError{Code: 451, Message: "later"}, false, hook.Unavailable, "451 to RCPT"},
		"malformed address": {func(m *hook.Mail) { m.To = []string{"ops@example.org\r\nRCPT TO:<x@example.org>"} }, nil, false, hook.Refused, "malformed address"},
		"closed port":       {func(m *hook.Mail) { m.Port = 1 }, nil, false, hook.Unavailable, "failed"},
		"private address":   {func(m *hook.Mail) { m.Host, m.Port = "10.0.0.1", 587 }, nil, false, hook.Refused, "not public"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, box := receive(t, nil), &mailbox{refusal: row.refusal}
			m := message(box.serve(r, row.plain))
			if row.change != nil {
				row.change(&m)
			}
			answer, err := r.client.Mail(t.Context(), m)
			if err != nil || answer.Verdict != row.want || !strings.Contains(answer.Detail, row.detail) || strings.Contains(answer.Detail, "s3cret") {
				t.Errorf("got %+v, %v, want %s with %q", answer, err, row.want, row.detail)
			}
			if len(box.messages) > 0 {
				t.Errorf("got messages %q, want none", box.messages)
			}
		})
	}
}
