package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// measureSlowBodies opens connections that send the header and only a part of the body. It
// calls /healthz until the server has closed all of them.
func measureSlowBodies(ctx context.Context, t *table) error {
	const bodies = 4000
	c, addresses, err := startStack("-runner", "goroutine")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	if err := healthy(ctx, addresses.URL); err != nil {
		return err
	}
	before, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	address, err := url.Parse(addresses.URL)
	if err != nil {
		return err
	}
	startedAt := time.Now()
	errs, closed := make([]error, bodies), make(chan struct{})
	var opened, ended sync.WaitGroup
	opened.Add(bodies)
	for i := range errs {
		ended.Go(func() { errs[i] = slowBody(ctx, address.Host, opened.Done) })
	}
	opened.Wait()
	during, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	go func() { ended.Wait(); close(closed) }()
	var answers []time.Duration
	for open := true; open; {
		called := time.Now()
		if err := healthy(ctx, addresses.URL); err != nil {
			return fmt.Errorf("with %d slow bodies: %w", bodies, err)
		}
		answers = append(answers, time.Since(called))
		select {
		case <-closed:
			open = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	const name = "4,000 slow bodies"
	t.add(name, "memory, of one", "%.0f MiB, %.1f KiB", float64(during.resident-before.resident)/(1<<20), float64(during.resident-before.resident)/bodies/1024)
	t.add(name, "GET /healthz meanwhile, p50 / p99", "%.1f / %.1f ms", millis(percentile(answers, 0.5)), millis(percentile(answers, 0.99)))
	t.add(name, "until all are closed", "%.1f s", time.Since(startedAt).Seconds())
	return nil
}

// slowBody sends a part of a request and waits until the server closes the connection.
func slowBody(ctx context.Context, address string, opened func()) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		_, err = fmt.Fprintf(conn, "POST /export/mods HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", address)
	}
	opened()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for buffer := make([]byte, 512); ; {
		if _, err := conn.Read(buffer); err != nil {
			return nil //nolint:nilerr // the server closes the connection after its answer
		}
	}
}

func healthy(ctx context.Context, at string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("got %s from /healthz", answer.Status)
	}
	return nil
}
