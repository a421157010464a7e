package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// broker is a system that keeps events and pushes them to subscribers.
type broker interface {
	name() string
	// start starts the server on the data of the folder, also after a kill.
	start(ctx context.Context, folder string) error
	server() *process
	stop()
	// publish returns when the system has acknowledged what it made of n. Sortie publishes the
	// events of a run; perPublish is how many events one call makes at least.
	publish(ctx context.Context, n int) error
	perPublish() int
	// subscribe calls got with the id of each event, and returns when the connection ends or ctx
	// does. after is the cursor of the last event, empty for the first.
	subscribe(ctx context.Context, after string, got func(id, cursor string)) error
}

const (
	subscribers    = 10
	published      = 2000 // events of the measurement
	publishers     = 8
	brokerPatience = time.Minute
)

type brokered struct {
	name            string
	rate, idle, p50 float64
	lost, twice     int
}

func measureStreams(ctx context.Context) (result, error) {
	var r result
	r.Table = "| | events/s to each of 10 subscribers | publish to delivery, p50 ms | idle MB | after `kill -9`: lost | twice |\n|---|---:|---:|---:|---:|---:|\n"
	for _, b := range []broker{&sortieEvents{}, &jetStream{}, &mercureHub{}} {
		row, err := measureBroker(ctx, b)
		if errors.Is(err, errLeftOut) {
			r.Notes = append(r.Notes, err.Error()+".")
			continue
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", b.name(), err)
		}
		fmt.Fprintf(os.Stderr, "%+v\n", row)
		r.Table += fmt.Sprintf("| %s %s | %.0f | %.1f | %.0f | %d | %d |\n", row.name, version(row.name), row.rate, row.p50, row.idle, row.lost, row.twice)
		r.Figures = append(r.Figures,
			figure{row.name + ": events a second to each subscriber", row.rate, "1/s", "more", 0.25},
			figure{row.name + ": publish to delivery, p50", row.p50, "ms", "less", 0.3},
			figure{row.name + ": idle memory", row.idle, "MB", "less", 0.1},
			figure{row.name + ": lost after the kill", float64(row.lost), "", "less", 0},
			figure{row.name + ": delivered twice after the kill", float64(row.twice), "", "less", 0})
	}
	r.Notes = append(r.Notes, fmt.Sprintf("At least %d events from %d publishers, each acknowledged before the next. NATS JetStream keeps a file and syncs it for each message (sync_interval: always), as Sortie's commits do; Mercure keeps a Bolt file. "+
		"Sortie has no call that publishes: its events are those of programs (`exec:/bin/true`), which its rate includes. After the kill in the middle of the publications the server is started again, and subscribers continue after the last event that they saw; *lost* are events of acknowledged publications that a subscriber did not get within %s.", published, publishers, brokerPatience))
	return r, nil
}

// reader is one subscriber that reconnects.
type reader struct {
	mu     sync.Mutex
	seen   map[string]int
	at     map[string]time.Time
	cursor string
}

func (r *reader) got(id, cursor string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[id]++
	r.at[id], r.cursor = time.Now(), cursor
}

func (r *reader) follow(ctx context.Context, b broker) {
	for ctx.Err() == nil {
		r.mu.Lock()
		after := r.cursor
		r.mu.Unlock()
		_ = b.subscribe(ctx, after, r.got)
		time.Sleep(20 * time.Millisecond)
	}
}

// count returns how many events the reader has seen.
func (r *reader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

func measureBroker(ctx context.Context, b broker) (brokered, error) {
	row := brokered{name: b.name()}
	folder, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return row, err
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := b.start(ctx, folder); err != nil {
		return row, err
	}
	defer b.stop()
	time.Sleep(5 * time.Second)
	row.idle = float64(b.server().resident()) / 1e6
	var readers []*reader
	following, end := context.WithCancel(ctx)
	var connected sync.WaitGroup
	for range subscribers {
		r := &reader{seen: map[string]int{}, at: map[string]time.Time{}}
		readers = append(readers, r)
		connected.Go(func() { r.follow(following, b) })
	}
	defer func() { end(); connected.Wait() }()
	time.Sleep(time.Second)
	if row.p50, err = oneByOne(ctx, b, readers); err != nil {
		return row, err
	}
	before, began := readers[0].count(), time.Now()
	calls := (published + b.perPublish() - 1) / b.perPublish()
	if _, err := publishMany(ctx, b, 1000, calls); err != nil {
		return row, err
	}
	if err := arrived(ctx, readers, before+published); err != nil {
		return row, err
	}
	row.rate = float64(readers[0].count()-before) / time.Since(began).Seconds()
	return row, killBroker(ctx, b, folder, readers, &row)
}

// oneByOne publishes alone, and returns the median time until a subscriber has the first event
// of it.
func oneByOne(ctx context.Context, b broker, readers []*reader) (float64, error) {
	var took []float64
	for i := range 50 {
		before, began := readers[0].count(), time.Now()
		if err := b.publish(ctx, i); err != nil {
			return 0, err
		}
		if err := arrived(ctx, readers[:1], before+1); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began).Microseconds())/1000)
		time.Sleep(50 * time.Millisecond) // the others of the same publication
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func arrived(ctx context.Context, readers []*reader, n int) error {
	return until(ctx, fmt.Sprintf("%d events arrive", n), brokerPatience, func() bool {
		return !slices.ContainsFunc(readers, func(r *reader) bool { return r.count() < n })
	})
}

// publishMany publishes in parallel, and returns which were acknowledged.
func publishMany(ctx context.Context, b broker, first, calls int) ([]int, error) {
	next := make(chan int)
	var mu sync.Mutex
	var done []int
	var failure error
	var working sync.WaitGroup
	for range publishers {
		working.Go(func() {
			for n := range next {
				err := b.publish(ctx, n)
				mu.Lock()
				if err == nil {
					done = append(done, n)
				} else {
					failure = err
				}
				mu.Unlock()
			}
		})
	}
	for n := range calls {
		next <- first + n
	}
	close(next)
	working.Wait()
	return done, failure
}

// killBroker kills the server during publications, and compares what subscribers got.
func killBroker(ctx context.Context, b broker, folder string, readers []*reader, row *brokered) error {
	before := readers[0].count()
	acknowledged := make(chan []int)
	publishing, stop := context.WithCancel(ctx)
	go func() {
		done, _ := publishMany(publishing, b, 100_000, 400)
		acknowledged <- done
	}()
	if err := until(ctx, "some events arrive before the kill", brokerPatience, func() bool { return readers[0].count() > before+100 }); err != nil {
		stop()
		return err
	}
	if err := b.server().kill(); err != nil {
		stop()
		return err
	}
	stop()
	done := <-acknowledged
	if err := b.start(ctx, folder); err != nil {
		return fmt.Errorf("after the kill: %w", err)
	}
	want := before + len(done)*b.perPublish()
	_ = arrived(ctx, readers, want)
	for _, r := range readers {
		r.mu.Lock()
		row.lost += max(0, want-len(r.seen))
		for _, n := range r.seen {
			row.twice += n - 1
		}
		r.mu.Unlock()
	}
	return nil
}

// readSSE reads an event stream, and calls got for each event that has an id.
func readSSE(ctx context.Context, address, token, after string, got func(id, cursor string)) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	request.Header.Set("Accept", "text/event-stream")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	id, data := "", ""
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "" && id != "" && data != "":
			got(id, id)
			id, data = "", ""
		case strings.HasPrefix(line, "id:"):
			id = strings.TrimSpace(line[3:])
		case strings.HasPrefix(line, "data:"):
			data = line[5:]
		}
	}
	return lines.Err()
}
