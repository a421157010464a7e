package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
)

// source is a reader that follows the rules of EventSource. When its connection ends, it waits
// for the newest `retry`, and opens the stream after its newest `id`.
type source struct {
	last  string
	retry time.Duration
	got   []string
	close func() error
}

// read opens the stream and reads until the source has n events. The connection stays open.
func (s *source) read(ctx context.Context, b *bench, n int) (*bufio.Reader, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+path+"?after=earliest", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if s.last != "" {
		r.Header.Set("Last-Event-ID", s.last)
	}
	response, err := b.Client.Do(r)
	if err != nil {
		return nil, err
	}
	s.close = response.Body.Close
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("got status %d, want 200", response.StatusCode)
	}
	lines := bufio.NewReader(response.Body)
	for len(s.got) < n {
		if err := s.message(lines); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// message reads up to an empty line. Only then it updates s.
func (s *source) message(lines *bufio.Reader) error {
	next := *s
	var data bool
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "":
			if *s = next; data {
				s.got = append(s.got, s.last)
			}
			return nil
		case "id":
			next.last = value
		case "data":
			data = true
		case "retry":
			ms, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			next.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// TestThousandReadersReturn disconnects a thousand readers at once. Each returns after its
// retry time and receives each event once. No second has more than 40 % of the connections.
func TestThousandReadersReturn(t *testing.T) {
	t.Parallel()
	const readers, before, after = 1000, 10, 20
	config := settings
	config.Readers = 2 * readers // the server may notice a cut after the reader is back
	b := setup(t, config)
	b.add(t, slices.Repeat([]eventtype.Type{eventtype.Queued}, before)...)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	connections, cut := context.WithCancel(ctx)
	defer cut()
	ready, waiting, back := make(chan struct{}, readers), make(chan time.Duration, readers), make(chan time.Time, readers)
	failed := make(chan error, readers)
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			if err := func() error {
				s := &source{}
				lines, err := s.read(connections, b, before)
				if err != nil {
					return err
				}
				ready <- struct{}{}
				for err == nil {
					err = s.message(lines) // until the cut
				}
				due, stopTimer := b.Clock.NewTimer(s.retry)
				defer stopTimer()
				waiting <- s.retry
				select {
				case <-due:
				case <-ctx.Done():
					return ctx.Err()
				}
				back <- b.Clock.Now()
				if _, err = s.read(ctx, b, after); err != nil {
					return err
				}
				var want []string
				for n := range after {
					want = append(want, b.at(int64(n+1)))
				}
				if !slices.Equal(s.got, want) {
					return fmt.Errorf("got the events %v, want %v", s.got, want)
				}
				return s.close()
			}(); err != nil {
				failed <- err
			}
		})
	}
	for range readers {
		await(t, failed, ready)
	}
	cut()
	began := b.Clock.Now()
	b.add(t, slices.Repeat([]eventtype.Type{eventtype.Admitted}, after-before)...)
	var retries []time.Duration
	for range readers {
		retries = append(retries, await(t, failed, waiting))
	}
	slices.Sort(retries)
	seconds := map[int]int{}
	for due := retries; len(due) > 0; {
		b.Clock.Advance(100 * time.Millisecond)
		now := b.Clock.Now()
		for len(due) > 0 && due[0] <= now.Sub(began) {
			seconds[int(await(t, failed, back).Sub(began)/time.Second)]++
			due = due[1:]
		}
	}
	all.Wait()
	for range len(failed) {
		t.Error(<-failed)
	}
	if t.Logf("reconnects in each second: %v", seconds); retries[0] < time.Second || retries[readers-1] > 5*time.Second {
		t.Errorf("got retries from %s to %s, want 1 to 5 s", retries[0], retries[readers-1])
	}
	for second, n := range seconds {
		if n > readers*40/100 {
			t.Errorf("got %d of %d reconnects in second %d, want at most 40 %%", n, readers, second)
		}
	}
}

// await returns the next value that a reader sends. It fails the test if a reader fails.
func await[T any](t *testing.T, failed <-chan error, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case err := <-failed:
		t.Fatal(err)
	}
	return v
}
