package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	sdk "github.com/sortie-dev/sortie/shared/sdk/go/client"
)

// A call that has waited for probeEvery begins to probe the server. The server is lost if it
// leaves a probe without an answer for probeTime. Together they are less than two seconds.
const (
	probeEvery = 500 * time.Millisecond
	probeTime  = 1400 * time.Millisecond
)

var errSilent = errors.New("it does not answer")

// Probe checks that a server of this machine answers requests. A process that hangs accepts
// connections, and its open streams do not break. Probe does nothing for other servers: their
// answers may take longer.
func (c *Client) Probe(ctx context.Context) error {
	if host := c.base.Hostname(); host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil
	}
	timed, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	resp, err := c.api.Open(timed, call{method: http.MethodHead, path: "healthz"}.request())
	if err == nil {
		return resp.Body.Close()
	}
	if _, refused := errors.AsType[*sdk.Error](err); refused {
		return nil
	}
	if ctx.Err() == nil && timed.Err() != nil {
		return unreachable(c.base, errSilent)
	}
	return c.failure(ctx, err)
}

// probing probes the server until the returned function is called. It reports that the server
// hangs, once, and that it answers again. Other failures are those of the call itself.
func (c *Client) probing(ctx context.Context) (stop func()) {
	report := c.onRetry
	if report == nil {
		report = c.onSilence
	}
	if report == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() {
		for silent := false; c.sleep(ctx, probeEvery) == nil; {
			err := c.Probe(ctx)
			switch hangs := errors.Is(err, errSilent); {
			case ctx.Err() != nil:
				return
			case hangs && !silent:
				silent = true
				report(err)
			case err == nil && silent:
				silent = false
				c.contacted()
			}
		}
	})
	return func() {
		cancel()
		probes.Wait()
	}
}
