package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// receivers delivers the events of an export to receivers that use the Standard Webhooks
// libraries of npm and PyPI. They must accept each delivery and refuse changed copies. During
// the rotation of a secret, receivers with either secret must accept each delivery.
func receivers(ctx context.Context, k *kit) error {
	s, err := k.start(ctx, "receivers", "", "SORTIE_HOOK_ALLOW=127.0.0.1")
	if err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"npm":  {k.tools.Node, k.config("testdata/clients/receiver.cjs")},
		"PyPI": {k.python("python"), k.config("testdata/clients/receiver.py")},
	} {
		if err := errors.Join(k.receive(ctx, s, args), k.receiveRotated(ctx, s, args)); err != nil {
			return fmt.Errorf("library of %s: %w", name, err)
		}
	}
	return nil
}

// delivery is a request of the server with the receiver's status.
type delivery struct {
	header http.Header
	body   []byte
	status int
	err    error
}

// receive forwards the deliveries of one export to a receiver.
func (k *kit) receive(ctx context.Context, s *server, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	c, err := s.client()
	if err != nil {
		return err
	}
	started := make(chan struct{})
	var address string // set before started is closed
	deliveries := make(chan delivery, 100)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-started
		body, err := io.ReadAll(r.Body)
		d := delivery{header: r.Header, body: body, err: err}
		if err == nil {
			d.status, d.err = send(ctx, address, r.Header, body)
		}
		deliveries <- d
		w.WriteHeader(max(d.status, http.StatusOK))
	}))
	defer front.Close()
	hook, err := c.CreateWebhook(ctx, contract.WebhookSettings{URL: front.URL, EventTypes: []string{"job.*"}, Ordered: true}, front.URL)
	if err != nil {
		return fmt.Errorf("cannot create a webhook: %w", err)
	}
	if address, err = k.receiver(ctx, args, hook.Secret); err != nil {
		return err
	}
	close(started)
	if _, err := c.Export(ctx, "mods", contract.ExportRequest{PI: samples.SampleRoot}, front.URL); err != nil {
		return fmt.Errorf("cannot export: %w", err)
	}
	for {
		var d delivery
		select {
		case d = <-deliveries:
		case <-ctx.Done():
			return fmt.Errorf("got no %s from the webhook: %w", eventtype.Completed, ctx.Err())
		}
		e, err := events.Parse(d.body)
		if err := errors.Join(d.err, err); err != nil {
			return fmt.Errorf("cannot read a delivery: %w", err)
		}
		if d.status != http.StatusNoContent {
			return fmt.Errorf("delivery of %s: got %d, want 204", e.EventType, d.status)
		}
		if e.EventType == eventtype.Completed {
			return refused(ctx, address, hook.Secret, d)
		}
	}
}

// refused sends changed copies of an accepted delivery, which the receiver must refuse.
func refused(ctx context.Context, address, secret string, d delivery) error {
	other := make([]byte, 32)
	_, _ = rand.Read(other) // it never fails
	foreign := "whsec_" + base64.StdEncoding.EncodeToString(other)
	seconds, err := strconv.ParseInt(d.header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		return fmt.Errorf("cannot read the time of a delivery: %w", err)
	}
	now := time.Unix(seconds, 0)
	for _, c := range []struct {
		name, secret string
		at           time.Time
		body         []byte
		want         int
	}{
		{"unchanged", secret, now, d.body, http.StatusNoContent},
		{"changed body", "", now, append(bytes.Clone(d.body), ' '), http.StatusUnauthorized},
		{"old timestamp", secret, now.Add(-6 * time.Minute), d.body, http.StatusUnauthorized},
		{"another secret", foreign, now, d.body, http.StatusUnauthorized},
	} {
		header := d.header.Clone()
		if c.secret != "" {
			signer, err := standardwebhooks.NewWebhook(c.secret)
			if err != nil {
				return fmt.Errorf("cannot sign a copy: %w", err)
			}
			signature, err := signer.Sign(header.Get("Webhook-Id"), c.at, c.body)
			if err != nil {
				return fmt.Errorf("cannot sign a copy: %w", err)
			}
			header.Set("Webhook-Timestamp", fmt.Sprint(c.at.Unix()))
			header.Set("Webhook-Signature", signature)
		}
		status, err := send(ctx, address, header, c.body)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if status != c.want {
			return fmt.Errorf("%s: got %d, want %d", c.name, status, c.want)
		}
	}
	return nil
}

// send posts a delivery to a receiver and returns its status.
func send(ctx context.Context, address string, header http.Header, body []byte) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("cannot send a delivery: %w", err)
	}
	r.Header = header.Clone()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, fmt.Errorf("cannot send a delivery: %w", err)
	}
	return answer.StatusCode, answer.Body.Close() //nolint:wrapcheck // it cannot fail
}
