package sensors_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

const every = 30 * time.Second

func scans(existing bool) sensor.Settings {
	return sensor.Settings{Bucket: &sensor.Bucket{Name: "scans", Prefix: "in/", SecretRef: "scans", Existing: existing}}
}

func orders() sensor.Settings {
	return sensor.Settings{Queue: &sensor.Queue{URL: "https://sqs.eu-central-1.amazonaws.com/1/orders", SecretRef: "orders"}}
}

func TestEachNewObjectHasOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(false))
	w.objects["in/old"] = sensor.Object{Key: "in/old", ETag: "1", ModifiedAt: began.Add(-time.Minute)}
	w.put("out/x", "1")
	w.put("in/a", "1")
	w.poll(0)
	w.want("in/a")
	w.put("in/b", "1")
	w.put("in/0", "1") // below the last key
	w.poll(every - time.Second)
	w.want("in/a")
	w.poll(time.Second)
	w.want("in/a", "in/b", "in/0")
	w.put("in/a", "2") // overwritten
	w.put("in/b", "1") // overwritten with the same content
	w.put("in/old", "2")
	w.poll(every)
	w.want("in/a", "in/a", "in/b", "in/0", "in/old")
	delete(w.objects, "in/b")
	w.poll(every)
	for range 10 {
		w.poll(every)
	}
	w.want("in/a", "in/a", "in/b", "in/0", "in/old")
	for id, n := range w.asked {
		if n != 1 {
			t.Errorf("got %d calls about %s, want 1: it is remembered", n, id)
		}
	}
	if s := w.state(); s.Known != 3 || s.Failures != 0 {
		t.Errorf("got %+v, want 3 known objects", s)
	}
}

func TestExistingObjectsStartRunsIfAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(true))
	w.objects["in/old"] = sensor.Object{Key: "in/old", ETag: "1", ModifiedAt: began.AddDate(-1, 0, 0)}
	w.poll(0)
	w.want("in/old")
}

// TestClocksDiffer has a store whose clock is an hour ahead or behind.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		w := newWorld(t, scans(false))
		w.ahead = ahead
		w.objects["in/old"] = sensor.Object{Key: "in/old", ETag: "1", ModifiedAt: began.Add(ahead - 10*time.Second)}
		w.clock.Advance(5 * time.Second)
		w.put("in/new", "1")
		w.poll(every)
		w.want("in/new")
	}
}

// TestTenThousandObjects puts 10,000 objects at once, before a queue that takes 2,500 runs and then
// empties.
func TestTenThousandObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(false))
	w.poll(0)
	var keys []string
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("in/%05d", i))
		w.put(keys[i], "1")
	}
	w.room = 2500
	w.poll(every)
	if len(w.made) != 2500 || w.state().Failure != "the queue is full" {
		t.Fatalf("got %d runs and %+v, want 2500 and a full queue", len(w.made), w.state())
	}
	w.room = 1 << 30
	w.poll(every)
	w.want(keys...)
	if s := w.state(); s.Known != 10_000 || s.Failures != 0 {
		t.Errorf("got %+v, want all known", s)
	}
}

func TestTooManyObjectsAreAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(false))
	for i := range sensor.MaxObjects + 1 {
		key := fmt.Sprintf("in/%06d", i)
		w.objects[key] = sensor.Object{Key: key, ETag: "1", ModifiedAt: began.AddDate(0, 0, -1)}
	}
	w.poll(0)
	if s := w.state(); !strings.Contains(s.Failure, "more than 100000 objects") {
		t.Errorf("got %+v, want the limit", s)
	}
	for key := range w.objects {
		if key < "in/05" {
			delete(w.objects, key)
		}
	}
	w.put("in/new", "1")
	w.poll(time.Hour)
	w.poll(time.Hour)
	w.want("in/new")
	if s := w.state(); s.Failures != 0 || s.Known != sensor.MaxObjects/2+2 {
		t.Errorf("got %+v, want that the removed objects are forgotten", s)
	}
}

// TestOutageIsCaughtUp has a bucket that is away for a day.
func TestOutageIsCaughtUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(false))
	w.put("in/a", "1")
	w.poll(0)
	w.down = fault.New(fault.Unavailable, "no answer from the host")
	calls := w.calls
	var want []string
	for range 24 * 60 {
		w.poll(time.Minute)
	}
	if s := w.state(); s.Failures < 100 || s.Failure != "no answer from the host" || !s.FailedAt.Before(w.clock.Now().Add(-23*time.Hour)) || w.calls-calls > 24*60+300*14 {
		t.Errorf("got %+v and %d calls, want failures of a day with pauses of 10 minutes", s, w.calls-calls)
	}
	for i := range 50 {
		want = append(want, fmt.Sprintf("in/%d", i))
		w.put(want[i], "1")
	}
	w.down = nil
	w.poll(10 * time.Minute)
	w.want(append(want, "in/a")...)
	if s := w.state(); s.Failures != 0 || s.Failure != "" {
		t.Errorf("got %+v, want no failure", s)
	}
}

func TestPausedAndDeletedJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(false))
	w.poll(0)
	paused := w.job.Pause(w.clock.Now())
	w.job = &paused
	w.put("in/a", "1")
	w.poll(every)
	w.want()
	resumed := w.job.Resume(w.clock.Now())
	w.job = &resumed
	w.poll(every)
	w.want("in/a")
	w.job = nil
	w.put("in/b", "1")
	w.poll(every)
	w.want("in/a")
	if len(w.resources) == 0 {
		t.Error("got no record at once, want that it waits for a job that is stored now")
	}
	w.poll(sensor.AbandonedAfter)
	if len(w.resources) != 0 {
		t.Errorf("got %d records of a deleted job, want none", len(w.resources))
	}
	w.clock.Advance(time.Minute)
	w.define(scans(false)) // a new job with the id
	w.put("in/c", "1")
	w.poll(0)
	w.want("in/a", "in/c")
}

func TestChangedPlaceBeginsAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(false))
	w.put("in/a", "1")
	w.put("more/old", "1")
	w.poll(0)
	w.clock.Advance(10 * time.Second)
	other := scans(false)
	other.Bucket.Prefix = "more/"
	w.define(other)
	w.clock.Advance(2 * time.Second)
	w.put("more/new", "1")
	w.poll(0)
	w.want("in/a", "more/new")
	other.Bucket.Every = "10s" // the same place
	w.define(other)
	w.put("more/b", "1")
	w.poll(10 * time.Second)
	w.want("in/a", "more/new", "more/b")
}

func TestHostileObjectsAndFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(false))
	long := "in/" + strings.Repeat("\x01", 1021)
	keys := map[string]string{
		"in/../../etc/passwd": "in/../../etc/passwd", "in/a\x00b": "in/a%00b", "in/a\nb%": "in/a%0Ab%25", "in/ü€𝄞": "in/ü€𝄞",
		"in/" + strings.Repeat("k", 1021): "in/" + strings.Repeat("k", 1021), "in/$(reboot)": "in/$(reboot)",
	}
	var want []string
	for key, subject := range keys {
		w.put(key, "1")
		want = append(want, subject)
	}
	w.put(long, "1") // its subject is too long for an attribute
	w.put("in/too-long", "1")
	w.put("in/etag", "a\nb")
	w.poll(0)
	w.want(want...)
	if s := w.state(); s.Refused == "" || s.Failures != 0 || s.Known != len(keys)+3 {
		t.Errorf("got %+v, want refused objects that do not stop the others", s)
	}
	for secret, want := range map[string]string{"": `no secret "scans"`, "k3y-of-nothing": "want ACCESS_KEY_ID:SECRET_ACCESS_KEY"} {
		w.secret = secret
		w.poll(time.Hour)
		if s := w.state(); !strings.Contains(s.Failure, want) || strings.Contains(s.Failure, "k3y") {
			t.Errorf("got %q, want %q", s.Failure, want)
		}
	}
}

func TestEachMessageHasOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, orders())
	var want []string
	for i := range 2500 {
		want = append(want, fmt.Sprintf("m%d", i))
		w.messages = append(w.messages, sensor.Message{ID: want[i], Body: "not JSON {", SentAt: began})
	}
	w.messages = append(w.messages, sensor.Message{ID: "large", Body: strings.Repeat("x", 256<<10)}, sensor.Message{Body: "no id"})
	w.poll(0)
	w.want(want...)
	if s := w.state(); len(w.messages) != 2 || s.Refused == "" || s.Failures != 0 {
		t.Errorf("got %d messages and %+v, want those that can have no run to stay", len(w.messages), s)
	}
	w.room = len(w.made)
	w.messages = append(w.messages, sensor.Message{ID: "late", Body: `{"a": 1}`})
	w.poll(every)
	if s := w.state(); len(w.messages) != 3 || s.Failure != "the queue is full" {
		t.Errorf("got %d messages and %+v, want the message to wait for the queue", len(w.messages), s)
	}
	w.room++
	w.poll(5 * time.Minute)
	w.want(append(want, "late")...)
}

// TestKillsOfPolls kills the process at each call of a poll, before or after it takes effect.
func TestKillsOfPolls(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]sensor.Settings{"bucket": scans(false), "queue": orders()} {
		for _, lost := range []bool{false, true} {
			for at, done := 1, false; !done; at++ {
				w := newWorld(t, settings)
				w.lost, w.killAt = lost, at
				var want []string
				for i := range 3 {
					want = append(want, fmt.Sprintf("in/%d", i))
					w.put(want[i], "1")
					w.messages = append(w.messages, sensor.Message{ID: want[i], Body: "x"})
				}
				w.poll(0)
				w.poll(5 * time.Minute)
				w.poll(5 * time.Minute)
				w.want(want...)
				if w.state().Failures != 0 || settings.Queue != nil && len(w.messages) != 0 {
					t.Errorf("%s: killed at call %d, lost %v: got %+v and %d messages, want all done", name, at, lost, w.state(), len(w.messages))
				}
				done = w.calls < at
			}
		}
	}
}

// TestPollsOverlap polls the same sensor from several processes.
func TestPollsOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scans(false))
	var want []string
	for i := range 200 {
		want = append(want, fmt.Sprintf("in/%d", i))
		w.put(want[i], "1")
	}
	done := make(chan error)
	for range 4 {
		go func() { done <- w.polls.PollDue(t.Context()) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	w.poll(every)
	w.want(want...)
}
