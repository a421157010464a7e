package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// streamReaders is the number of readers of one stream.
const streamReaders = 1000

// measureStreams opens readers of Server-Sent Events in this process and appends events to
// their stream in another process.
func measureStreams(ctx context.Context, t *table) error {
	c, err := startPart("streams")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	address, err := c.line()
	if err != nil {
		return err
	}
	before, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	readers := &streamGroup{address: address}
	defer readers.close()
	if err := readers.open(ctx, "latest"); err != nil {
		return err
	}
	idle, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	const name = "1,000 readers of events"
	t.add(name, "memory of an idle one", "%.1f KiB", float64(idle.resident-before.resident)/streamReaders/1024)
	if err := readers.pace(ctx, t, name); err != nil {
		return err
	}
	if err := readers.burst(ctx, t, name); err != nil {
		return err
	}
	readers.close()
	return resumeEvents(ctx, t, address)
}

// pace appends 10 events a second. It measures the time from before each append until a reader
// has the event.
func (g *streamGroup) pace(ctx context.Context, t *table, name string) error {
	const events = 100
	g.keep.Store(true)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for range events {
		<-ticker.C
		if err := appendEvents(ctx, g.address, 1); err != nil {
			return err
		}
	}
	if err := g.await(events * streamReaders); err != nil {
		return err
	}
	g.keep.Store(false)
	t.add(name, "from the append to a reader at 10 events/s, p50 / p99", "%.1f / %.1f ms", millis(percentile(g.delays, 0.5)), millis(percentile(g.delays, 0.99)))
	return nil
}

// burst appends events as fast as possible.
func (g *streamGroup) burst(ctx context.Context, t *table, name string) error {
	const batches, size = 40, 10
	before, startedAt := g.received.Load(), time.Now()
	for range batches {
		if err := appendEvents(ctx, g.address, size); err != nil {
			return err
		}
	}
	if err := g.await(before + batches*size*streamReaders); err != nil {
		return err
	}
	t.add(name, "deliveries", "%.0f/s", batches*size*streamReaders/time.Since(startedAt).Seconds())
	return nil
}

// resumeEvents reads a stream of 100,000 events from its start, in a process that has not read
// them yet.
func resumeEvents(ctx context.Context, t *table, address string) error {
	const events = 100_000
	if err := appendEvents(ctx, address, events); err != nil {
		return err
	}
	one := &streamGroup{address: address}
	defer one.close()
	startedAt := time.Now()
	if err := one.openOne(ctx, "earliest"); err != nil {
		return err
	}
	if err := one.await(events); err != nil {
		return err
	}
	t.add("100,000 events", "resumed by one reader in", "%.1f s", time.Since(startedAt).Seconds())
	return nil
}

// appendEvents makes the server append events.
func appendEvents(ctx context.Context, address string, n int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/append?n=%d", address, n), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("cannot append events: %s", text)
	}
	return err
}

// streamGroup is a group of readers of one stream.
type streamGroup struct {
	address string
	conns   []net.Conn

	received atomic.Int64
	// keep makes the readers record the delays of events.
	keep   atomic.Bool
	mu     sync.Mutex
	delays []time.Duration
}

// open opens all readers and waits until each has its first message.
func (g *streamGroup) open(ctx context.Context, after string) error {
	for range streamReaders {
		if err := g.openOne(ctx, after); err != nil {
			return err
		}
	}
	return nil
}

func (g *streamGroup) openOne(ctx context.Context, after string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", g.address)
	if err != nil {
		return err
	}
	g.conns = append(g.conns, conn)
	if _, err := fmt.Fprintf(conn, "GET /v1/events/stream?after=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", after); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(conn, 4096)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "id: ") {
			break
		}
	}
	go g.read(lines)
	return nil
}

// occurredAt is the text before the time in an event.
var occurredAt = []byte(`"occurredAt":"`)

// read counts the events of a reader until its connection is closed.
func (g *streamGroup) read(lines *bufio.Reader) {
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		_, rest, ok := bytes.Cut(line, occurredAt)
		if !ok {
			continue
		}
		if g.keep.Load() {
			text, _, _ := bytes.Cut(rest, []byte(`"`))
			if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
				g.mu.Lock()
				g.delays = append(g.delays, time.Since(at))
				g.mu.Unlock()
			}
		}
		g.received.Add(1)
	}
}

// await waits until the readers together have received this many events.
func (g *streamGroup) await(events int64) error {
	limit := time.After(2 * time.Minute)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for g.received.Load() < events {
		select {
		case <-look.C:
		case <-limit:
			return fmt.Errorf("got %d events in two minutes, want %d", g.received.Load(), events)
		}
	}
	return nil
}

func (g *streamGroup) close() {
	for _, conn := range g.conns {
		_ = conn.Close()
	}
}
