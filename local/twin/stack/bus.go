package stack

import (
	"context"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/nats"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/port"
)

// The variables of the bus. In a deployment SORTIE_BUS has the name of the bus; in the local
// system it has an address.
const (
	busURL         = "SORTIE_BUS"
	busCredentials = "SORTIE_BUS_CREDENTIALS" //nolint:gosec // the name of a variable
)

// readBus reads the configuration of the bus. The URL is empty if no bus is configured.
func readBus(lookup func(string) (string, bool)) (c nats.Config, err error) {
	if c.URL, _ = lookup(busURL); !strings.Contains(c.URL, "://") {
		return nats.Config{}, nil
	}
	c.Credentials, _ = lookup(busCredentials)
	if err := c.Check(); err != nil {
		return nats.Config{}, fmt.Errorf("%s: %w", busURL, err)
	}
	return c, nil
}

// wireBus creates the use cases of replays and connects the bus, if one is configured.
func (s *Stack) wireBus(config runs.Config) error {
	c := s.config.Settings.Bus
	s.replays = delivery.NewReplays(s.webhooks, c.URL != "")
	if c.URL == "" {
		return nil
	}
	c.Retention, c.Log = config.EventRetention, s.config.Log
	publisher, err := nats.Connect(c)
	if err != nil {
		return fmt.Errorf("%s: %w", busURL, err)
	}
	s.publisher, s.bus = publisher, delivery.NewBus(s.feed, publisher, s.eventKeys, delivery.NoTurns{}, s.config.Log)
	return nil
}

// publishEvents publishes the streams of tenants to the bus until the stack stops. It publishes
// events as soon as they are stored.
func (s *Stack) publishEvents(ctx context.Context) {
	known := map[string]bool{}
	for {
		tenants, err := s.dispatch.Tenants(ctx)
		for _, tenant := range tenants {
			if !known[tenant] {
				known[tenant] = true
				s.loops.Go(func() { s.publishTenant(ctx, tenant) })
			}
		}
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "cannot list the streams of events; it is repeated", "error", err.Error())
		}
		if !s.sleep(ctx) {
			return
		}
	}
}

// publishTenant publishes the events of one tenant until ctx ends.
func (s *Stack) publishTenant(ctx context.Context, tenant string) {
	for ctx.Err() == nil {
		position, err := s.bus.Position(ctx, tenant)
		if err == nil {
			err = s.feed.Wait(ctx, port.EventStream(tenant), position)
		}
		if err == nil {
			err = s.bus.Publish(ctx, tenant)
		}
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "the bus did not get all events; it is repeated", "tenant", tenant, "error", err.Error())
			s.sleep(ctx)
		}
	}
}
