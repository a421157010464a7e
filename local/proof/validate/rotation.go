package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// receiveRotated sends a test event before and after a rotation to two receivers. One has the
// older secret, and the other the newer.
func (k *kit) receiveRotated(ctx context.Context, s *server, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	c, err := s.client()
	if err != nil {
		return err
	}
	sent := make(chan delivery, 10)
	front := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sent <- delivery{header: r.Header, body: body, err: err}
	}))
	defer front.Close()
	// No event of this type occurs, so the receiver gets only the test events.
	hook, err := c.CreateWebhook(ctx, contract.WebhookSettings{URL: front.URL, EventTypes: []string{"schedule.fired"}}, front.URL)
	if err != nil {
		return fmt.Errorf("cannot create a webhook: %w", err)
	}
	older, err := k.receiver(ctx, args, hook.Secret)
	if err != nil {
		return err
	}
	ping := func() (delivery, error) {
		if _, err := c.TestWebhook(ctx, hook.ID); err != nil {
			return delivery{}, fmt.Errorf("cannot send a test event: %w", err)
		}
		select {
		case d := <-sent:
			return d, d.err
		case <-ctx.Done():
			return delivery{}, fmt.Errorf("got no test event: %w", ctx.Err())
		}
	}
	before, err := ping()
	if err != nil {
		return err
	}
	rotated, err := c.RotateWebhook(ctx, hook.ID, false)
	if err != nil {
		return fmt.Errorf("cannot rotate the secret: %w", err)
	}
	newer, err := k.receiver(ctx, args, rotated.Secret)
	if err != nil {
		return err
	}
	during, err := ping()
	if err != nil {
		return err
	}
	if n := len(strings.Fields(during.header.Get("Webhook-Signature"))); n != 2 || rotated.Secret == hook.Secret {
		return fmt.Errorf("got %d signatures during the rotation, want 2 of different secrets", n)
	}
	for _, row := range []struct {
		name, address string
		delivery      delivery
		want          int
	}{
		{"older secret before the rotation", older, before, http.StatusNoContent},
		{"newer secret before the rotation", newer, before, http.StatusUnauthorized},
		{"older secret during the rotation", older, during, http.StatusNoContent},
		{"newer secret during the rotation", newer, during, http.StatusNoContent},
	} {
		status, failed := send(ctx, row.address, row.delivery.header, row.delivery.body)
		if failed == nil && status != row.want {
			failed = fmt.Errorf("got %d, want %d", status, row.want)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", row.name, failed))
		}
	}
	return err
}

// receiver starts a receiver and returns its address.
func (k *kit) receiver(ctx context.Context, args []string, secret string) (address string, err error) {
	output, err := k.spawn(ctx, args, "WEBHOOK_SECRET="+secret)
	if err != nil {
		return "", err
	}
	line, err := output.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("got %q from the receiver, want its address: %w", line, err)
	}
	return strings.TrimSpace(line), nil
}
