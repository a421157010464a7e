package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// The model of the generator, and the sizes of the measurements.
const (
	firstTokens  = 300
	tokenStreams = 32
	streamTokens = 4000
	disconnects  = 100
	openStreams  = 1000
	openedAtOnce = 100
	// storedTasks exceeds the number of records that the store caches.
	storedTasks   = 1500
	inferenceName = "inference"
)

// measureInference measures the overhead of Sortie over an inference server. The server has no
// model, runs in this process and has the protocol of llama-server. For comparison, Go's
// reverse proxy in its own process is measured alternately.
func measureInference(ctx context.Context, t *table) error {
	for _, part := range []func(context.Context, *table) error{
		measureFirstToken, measureTokenRate, measureDisconnect, measureClients, measureOpenStreams,
	} {
		if err := part(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// generated is an inference server with a stack in front of it.
type generated struct {
	engine *generator
	stack  *child
	url    string
}

// startGenerated starts a generator that needs every per token, and a stack in front of it.
func startGenerated(kind platform.EngineKind, every time.Duration, slots int) (*generated, error) {
	g := &generated{engine: startGenerator(kind, every, slots)}
	c, addresses, err := startStack("-engine", g.engine.url(), "-engine-kind", string(kind))
	if err != nil {
		g.engine.close()
		return nil, err
	}
	g.stack, g.url = c, addresses.URL
	return g, nil
}

func (g *generated) end() {
	_ = g.stack.end()
	g.engine.close()
}

// measureFirstToken sends requests alternately to the reverse proxy and to Sortie, one at a
// time. It compares the times until the first token.
func measureFirstToken(ctx context.Context, t *table) error {
	g, err := startGenerated(platform.EngineLlamaCpp, 0, tokenStreams)
	if err != nil {
		return err
	}
	defer g.end()
	proxy, err := startPart("proxy", g.engine.url())
	if err != nil {
		return err
	}
	defer func() { _ = proxy.end() }()
	address, err := proxy.line()
	if err != nil {
		return err
	}
	var direct, through []time.Duration
	for i := range firstTokens + 20 {
		for _, target := range []struct {
			url string
			to  *[]time.Duration
		}{{"http://" + address, &direct}, {g.url, &through}} {
			took, err := toFirstToken(ctx, target.url)
			if err != nil {
				return err
			}
			if i >= 20 { // the first requests open connections
				*target.to = append(*target.to, took)
			}
		}
	}
	for _, p := range []float64{0.5, 0.99} {
		a, b := percentile(direct, p), percentile(through, p)
		t.add(inferenceName, fmt.Sprintf("to the first token, p%.0f: reverse proxy / Sortie / difference", 100*p),
			"%.1f / %.1f / %.1f ms", millis(a), millis(b), millis(b-a))
	}
	return nil
}

func toFirstToken(ctx context.Context, url string) (time.Duration, error) {
	began := time.Now()
	s, err := openAnswer(ctx, url, mockModel, 4)
	if err != nil {
		return 0, err
	}
	defer s.close()
	if !s.next() {
		return 0, fmt.Errorf("%s ended before its first token: %w", url, s.lines.Err())
	}
	took := time.Since(began)
	for s.next() { // read to the end, so that the connection can be reused
	}
	return took, nil
}

// measureTokenRate reads many streams of an engine that generates as fast as it can.
func measureTokenRate(ctx context.Context, t *table) error {
	g, err := startGenerated(platform.EngineLlamaCpp, 0, tokenStreams)
	if err != nil {
		return err
	}
	defer g.end()
	var tokens atomic.Int64
	began := time.Now()
	err = inParallel(tokenStreams, func() error {
		s, err := openAnswer(ctx, g.url, mockModel, streamTokens)
		if err != nil {
			return err
		}
		defer s.close()
		n := int64(0)
		for s.next() {
			n++
		}
		tokens.Add(n)
		if n < streamTokens {
			return fmt.Errorf("got a stream of %d tokens, want %d", n, streamTokens)
		}
		return s.lines.Err()
	})
	if err != nil {
		return err
	}
	t.add(inferenceName, fmt.Sprintf("stored and received tokens, %d streams", tokenStreams), "%.0f/s", float64(tokens.Load())/time.Since(began).Seconds())
	return nil
}

// measureDisconnect closes connections after the first token. It measures the time until the
// engine sees the end of its request.
func measureDisconnect(ctx context.Context, t *table) error {
	g, err := startGenerated(platform.EngineLlamaCpp, 5*time.Millisecond, tokenStreams)
	if err != nil {
		return err
	}
	defer g.end()
	var times []time.Duration
	for range disconnects {
		client, hangUp := context.WithCancel(ctx)
		s, err := openAnswer(client, g.url, mockModel, streamTokens)
		if err == nil && !s.next() {
			err = fmt.Errorf("no token before the disconnect: %w", s.lines.Err())
		}
		closed := time.Now()
		hangUp()
		if err != nil {
			return err
		}
		s.close()
		select {
		case at := <-g.engine.ended:
			times = append(times, at.Sub(closed))
		case <-time.After(time.Minute):
			return fmt.Errorf("the engine still generates a minute after the disconnect")
		}
	}
	t.add(inferenceName, "from the disconnect to the engine's end, p50 / p99", "%.1f / %.1f ms",
		millis(percentile(times, 0.5)), millis(percentile(times, 0.99)))
	return nil
}

// measureOpenStreams opens streams that wait for a token most of the time. Earlier tasks fill
// the store's cache, and the first half of the streams is not measured.
func measureOpenStreams(ctx context.Context, t *table) error {
	g, err := startGenerated(platform.EngineLlamaCpp, 5*time.Second, 2*openStreams)
	if err != nil {
		return err
	}
	defer g.end()
	client, hangUp := context.WithCancel(ctx)
	defer hangUp()
	for range (storedTasks + openStreams - 1) / openStreams {
		if err := inGroups(openStreams, func() error { return readWhole(client, g.url) }); err != nil {
			return err
		}
	}
	var sizes []int64
	for range 2 {
		err := inGroups(openStreams, func() error {
			s, err := openAnswer(client, g.url, mockModel, streamTokens)
			if err == nil && !s.next() {
				err = fmt.Errorf("a stream ended before its first token: %w", s.lines.Err())
			}
			return err
		})
		if err != nil {
			return err
		}
		u, err := g.stack.collected()
		if err != nil {
			return err
		}
		sizes = append(sizes, u.resident)
	}
	t.add(inferenceName, fmt.Sprintf("memory of one of %d open streams", openStreams), "%.1f KiB", float64(sizes[1]-sizes[0])/openStreams/1024)
	return nil
}

// readWhole reads a whole answer of one token.
func readWhole(ctx context.Context, url string) error {
	s, err := openAnswer(ctx, url, mockModel, 1)
	if err != nil {
		return err
	}
	defer s.close()
	for s.next() {
	}
	return s.lines.Err()
}

// inGroups makes n calls of each, at most openedAtOnce of them at a time.
func inGroups(n int, each func() error) error {
	for ; n > 0; n -= openedAtOnce {
		if err := inParallel(min(n, openedAtOnce), each); err != nil {
			return err
		}
	}
	return nil
}

// inParallel makes n concurrent calls of each and returns one of their errors.
func inParallel(n int, each func() error) error {
	failures := make(chan error, n)
	for range n {
		go func() { failures <- each() }()
	}
	var failure error
	for range n {
		if err := <-failures; err != nil {
			failure = err
		}
	}
	return failure
}

// answered is the stream of an answer of the OpenAI API.
type answered struct {
	lines *bufio.Scanner
	close func()
}

// manyStreams is a client without a connection limit.
var manyStreams = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: openStreams}}

// mockModel is the model of a generator.
const mockModel = "mock"

func openAnswer(ctx context.Context, url, model string, tokens int) (*answered, error) {
	body := fmt.Sprintf(`{"model":%q,"prompt":"measure","max_tokens":%d,"stream":true}`, model, tokens)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := manyStreams.Do(r) //nolint:bodyclose // answered.close closes it
	if err != nil {
		return nil, err
	}
	s := &answered{lines: bufio.NewScanner(a.Body), close: func() { _ = a.Body.Close() }}
	if a.StatusCode != http.StatusOK {
		s.lines.Scan()
		s.close()
		return nil, fmt.Errorf("%s: %d %.300s", url, a.StatusCode, s.lines.Text())
	}
	return s, nil
}

var (
	dataLine = []byte("data: ")
	hasText  = []byte(`"text":"`)
	noText   = []byte(`"text":""`)
)

// next reads up to the next token. It returns false at the end of the stream.
func (s *answered) next() bool {
	for s.lines.Scan() {
		if line := s.lines.Bytes(); bytes.HasPrefix(line, dataLine) && bytes.Contains(line, hasText) && !bytes.Contains(line, noText) {
			return true
		}
	}
	return false
}
