package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

// Mail is an e-mail to send by a mail server.
type Mail struct {
	// Host and Port are the server. TLS is required: from the first byte at guard.ImplicitTLS,
	// otherwise by STARTTLS.
	Host string
	Port int
	// Username and Password sign in; without a name there is no authentication.
	Username, Password string
	// From and To are addresses (RFC 5322).
	From string
	To   []string
	// Subject and Text are plain text in UTF-8.
	Subject, Text string
	// ID is the same for repetitions of the message.
	ID string
	// Timeout limits the whole dialogue; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Mail sends a message once. A temporary failure (4xx) or a missing answer is Unavailable, a
// permanent one (5xx) is Refused. The error is that of ctx.
func (c *Client) Mail(ctx context.Context, m Mail) (Answer, error) {
	target, err := c.config.Policy.MailTarget(m.Host, m.Port)
	if err != nil {
		return Answer{Verdict: Refused, Detail: err.Error()}, nil
	}
	message, addresses, err := m.compose(c.config.Clock.Now())
	if err != nil {
		return Answer{Verdict: Refused, Detail: err.Error()}, nil
	}
	if m.Timeout == 0 {
		m.Timeout = DefaultTimeout
	}
	m.Timeout = min(max(m.Timeout, MinTimeout), MaxTimeout, max(c.left(ctx), MinTimeout))
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	expired, stop := c.config.Clock.NewTimer(m.Timeout)
	defer stop()
	go func() {
		select {
		case <-expired:
			cancel(errTimeout)
		case <-own.Done():
		}
	}()
	err = c.deliver(own, target, m, addresses, message)
	if ctx.Err() != nil {
		return Answer{}, fmt.Errorf("a message to %s was interrupted: %w", target.Host, ctx.Err())
	}
	return mailAnswer(cause(own, err), target, m.Timeout), nil
}

// mailAnswer returns the answer of a mail server. Its text is not shown, since a server could
// repeat a password in it.
func mailAnswer(err error, target guard.Target, timeout time.Duration) Answer {
	if err == nil {
		return Answer{Verdict: Allowed, Tries: 1, Detail: "accepted by " + target.Host}
	}
	a := Answer{Verdict: Unavailable, Tries: 1, Detail: describe(err, target, timeout)}
	if errors.Is(err, errNoTLS) {
		a.Verdict, a.Detail = Refused, fmt.Sprintf("%s offers no STARTTLS, which is required", target.Host)
	}
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		a.Status, a.Detail = reply.Code, fmt.Sprintf("%s answered %d to %s", target.Host, reply.Code, stepOf(err))
		if reply.Code >= 500 {
			a.Verdict = Refused
		}
	}
	return a
}

// errNoTLS is the failure of a server that cannot encrypt.
var errNoTLS = errors.New("no STARTTLS")

// mailStep is an error with the command of the dialogue that failed.
type mailStep struct {
	command string
	err     error
}

func (s *mailStep) Error() string { return s.command + ": " + s.err.Error() }
func (s *mailStep) Unwrap() error { return s.err }

func stepOf(err error) string {
	if s, ok := errors.AsType[*mailStep](err); ok {
		return s.command
	}
	return "the connection"
}

// deliver holds the dialogue with the mail server.
func (c *Client) deliver(ctx context.Context, target guard.Target, m Mail, addresses []string, message []byte) error {
	dialer := &net.Dialer{Control: c.config.Policy.Control(target), Resolver: c.config.Resolver, KeepAlive: -1}
	plainConn, err := dialer.DialContext(ctx, "tcp", target.URL.Host)
	if err != nil {
		return err
	}
	closed := context.AfterFunc(ctx, func() { _ = plainConn.Close() })
	defer closed()
	defer func() { _ = plainConn.Close() }() // Quit has ended the dialogue, or it has failed
	conn := plainConn
	secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.config.RootCAs, ServerName: target.Host}
	if target.Port == guard.ImplicitTLS {
		conn = tls.Client(conn, secure)
	}
	client, err := smtp.NewClient(conn, target.Host)
	if err != nil {
		return &mailStep{"the connection", err}
	}
	do := func(command string, call func() error) {
		if err == nil {
			if failed := call(); failed != nil {
				err = &mailStep{command, failed}
			}
		}
	}
	do("EHLO", func() error { return client.Hello("sortie") })
	if target.Port != guard.ImplicitTLS {
		do("STARTTLS", func() error {
			if ok, _ := client.Extension("STARTTLS"); !ok {
				return errNoTLS
			}
			return client.StartTLS(secure)
		})
	}
	if m.Username != "" {
		do("AUTH", func() error { return client.Auth(smtp.PlainAuth("", m.Username, m.Password, target.Host)) })
	}
	do("MAIL", func() error { return client.Mail(addresses[0]) })
	for _, to := range addresses[1:] {
		do("RCPT", func() error { return client.Rcpt(to) })
	}
	do("DATA", func() error {
		w, err := client.Data()
		if err != nil {
			return err
		}
		if _, err = w.Write(message); err != nil {
			return err
		}
		return w.Close()
	})
	if err == nil {
		_ = client.Quit() // the message is accepted
	}
	return err
}

// compose returns the message with its header. addresses are the bare addresses of the sender,
// first, and of the receivers.
func (m Mail) compose(now time.Time) (message []byte, addresses []string, err error) {
	var text bytes.Buffer
	var shown []string
	for i, address := range append([]string{m.From}, m.To...) {
		parsed, err := mail.ParseAddress(address)
		if err != nil || len(address) > limit.FileName || strings.ContainsFunc(parsed.Address, func(c rune) bool { return c < ' ' || c > '~' }) {
			return nil, nil, fmt.Errorf("malformed address %q, want one such as ops@example.org", limit.Cut(address, limit.FileName))
		}
		addresses = append(addresses, parsed.Address)
		if i > 0 {
			shown = append(shown, parsed.String())
		} else {
			fmt.Fprintf(&text, "From: %s\r\n", parsed)
		}
	}
	_, domain, _ := strings.Cut(addresses[0], "@")
	fmt.Fprintf(&text, "To: %s\r\n", strings.Join(shown, ",\r\n "))
	fmt.Fprintf(&text, "Subject: %s\r\n", mime.QEncoding.Encode("utf-8", plain(m.Subject)))
	fmt.Fprintf(&text, "Date: %s\r\nMessage-ID: <%s@%s>\r\nAuto-Submitted: auto-generated\r\n", now.UTC().Format(time.RFC1123Z), strings.ReplaceAll(m.ID, "#", "."), domain)
	text.WriteString("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n")
	body := quotedprintable.NewWriter(&text)
	if _, err := body.Write([]byte(m.Text)); err != nil {
		return nil, nil, fmt.Errorf("cannot encode the text: %w", err)
	}
	if err := body.Close(); err != nil {
		return nil, nil, fmt.Errorf("cannot encode the text: %w", err)
	}
	text.WriteString("\r\n")
	return text.Bytes(), addresses, nil
}
