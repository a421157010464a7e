package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

func (a *app) webhooksListen() *cobra.Command {
	var f eventFlags
	var forward, secret string
	c := &cobra.Command{
		Use: "listen --forward URL", Short: "Receive events here, as a webhook would get them",
		Long: `Read the events of the tenant as they come, and send each to a local address, signed as a
webhook signs it. No webhook is created, and the server needs no way to this machine.
Without --secret the command makes a secret and prints it. An event that the address does
not accept is reported and not repeated.`,
		Example: "  sortie webhooks listen --forward http://127.0.0.1:9000/hook --type job.*",
	}
	f.add(c, client.Latest)
	c.Flags().StringVar(&forward, "forward", "", "the address that gets the events")
	c.Flags().StringVar(&secret, "secret", "", "the secret that signs, whsec_ and base64 of 32 bytes")
	_ = c.MarkFlagRequired("forward") // the flag exists
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		query, err := f.query()
		if err != nil {
			return err
		}
		to, err := newForwarder(a, forward, secret)
		if err != nil {
			return err
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		a.Note("secret: %s", to.secret)
		err = c.FollowEvents(ctx, query, &f.after, func(event json.RawMessage) error { return to.send(ctx, event) })
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
	return c
}

// forwarder sends events to a local address.
type forwarder struct {
	*app
	URL, secret string
	key         hook.Key
	sender      *hook.Sender
}

func newForwarder(a *app, address, secret string) (*forwarder, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, cli.Wrong("--forward: malformed address %q, want one such as http://127.0.0.1:9000/", address)
	}
	host := u.Host
	if u.Port() == "" {
		host = u.Hostname()
	}
	policy, err := guard.Policy{}.WithRules(host)
	if err == nil {
		err = policy.WithPlainLoopback().CheckURL(address)
	}
	if err != nil {
		return nil, cli.Wrong("--forward: %v", err)
	}
	if secret == "" {
		var key [32]byte
		_, _ = rand.Read(key[:]) // it does not fail
		secret = hook.NewSecret(key)
	}
	key, err := hook.ParseKey(secret)
	if err != nil {
		return nil, cli.Wrong("--secret: %v", err)
	}
	sender := hook.NewSender(hook.Config{Policy: policy.WithPlainLoopback(), Clock: clock.System{}})
	return &forwarder{a, address, secret, key, sender}, nil
}

func (f *forwarder) send(ctx context.Context, event json.RawMessage) error {
	e, err := events.Parse(event)
	if err != nil {
		f.Note("some events are missing: %s", event) // stream.gap
		return nil                                   //nolint:nilerr // a gap is reported, and is no failure
	}
	notifier := events.Notifier{}
	if e.Notifier != nil {
		notifier = *e.Notifier
	}
	notifier.Delivery = events.DeliveryHMAC
	e.Notifier = &notifier
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot encode the event: %w", err)
	}
	reply, err := f.sender.Send(ctx, hook.Message{URL: f.URL, Body: body, Key: f.key, ID: e.EventID, Timeout: webhook.AttemptTime})
	if err != nil {
		return err
	}
	outcome := reply.Problem
	if reply.Status > 0 {
		outcome = fmt.Sprintf("answered %d in %d ms", reply.Status, reply.Latency.Milliseconds())
	}
	if f.JSON {
		return f.PrintLine(map[string]any{"eventId": e.EventID, "eventType": e.EventType, "status": reply.Status, "result": outcome})
	}
	return f.Say("%s %s: %s\n", e.EventType, e.EventID, outcome)
}
