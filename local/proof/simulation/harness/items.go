package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

// SensorSecret names the secret of the sensors.
const SensorSecret = "items"

// Items are the buckets and queues of the sensors of jobs. Their calls are slow, fail, and take
// effect without an answer. The caller can crash before and after each call.
type Items struct {
	W *Base
	// Faults is the probability that a call fails. Crashes is the probability that the process is
	// killed at a call of a poll, for the first maxKills times.
	Faults, Crashes float64
	// Ahead is how much the clock of the store is ahead.
	Ahead time.Duration
	// Every is the period in which the process looks for sensors that are due. Page is how many
	// objects a page has.
	Every time.Duration
	Page  int
	// Killed counts the polls whose process was killed, and Repeated the messages that were
	// received again.
	Killed, Repeated int

	objects  map[string]map[string]sensor.Object
	messages map[string][]*message
}

// message is a message of a queue, hidden until a time.
type message struct {
	sensor.Message
	hidden   time.Time
	received int
}

// DrawItems draws the buckets and queues.
func (w *Base) DrawItems() {
	i := &Items{
		W: w, Every: w.Between(5*time.Second, time.Minute), Page: 1 + w.Random.IntN(4),
		objects: map[string]map[string]sensor.Object{}, messages: map[string][]*message{},
	}
	if w.Chance(0.6) {
		i.Faults = w.Random.Float64() * 0.15
	}
	if !w.Plan.Reliable() && w.Chance(0.7) {
		i.Crashes = w.Random.Float64() * 0.2
	}
	if w.Chance(0.3) {
		i.Ahead = w.UpTo(2*time.Hour) - time.Hour
	}
	w.Items = i
}

// startPolls gives a new process its polls.
func (w *Base) startPolls() {
	if w.Items == nil {
		return
	}
	secrets := fake.NewSecrets(nil)
	secrets.Put(Client.Tenant, SensorSecret, "key:secret")
	w.polls = app.Polls(w.System.Runs, secrets, w.Items, w.Config)
}

// SchedulePolls schedules the polls of the sensors. A poll may begin before the last one ends.
func (w *Base) SchedulePolls() {
	w.Time.Push(w.Items.Every, true, func() {
		if w.Settling {
			return
		}
		w.SchedulePolls()
		w.Time.Spawn(true, w.poll)
	})
}

func (w *Base) poll() {
	if w.Down(sweepOutage) || w.Down(processOutage) || w.Process.Crashed {
		return
	}
	if !w.Call(func(ctx context.Context) {
		w.Time.Current.Call.polls = true
		if err := w.polls.PollDue(ctx); err != nil {
			w.Note("poll: %v", err)
		}
	}) {
		w.Items.Killed++
	}
}

// maxKills limits the kills by Crashes. A process that is killed every few seconds does nothing else.
const maxKills = 30

// crashes returns the probability that the process of a call is killed now.
func (w *Base) crashes(of *invocation) float64 {
	if of.polls && w.Items.Killed < maxKills {
		return max(w.Plan.Crashes, w.Items.Crashes)
	}
	return w.Plan.Crashes
}

// Put writes an object now. Its content determines its ETag.
func (i *Items) Put(bucket, key, content string) sensor.Object {
	o := sensor.Object{Key: key, ETag: content, Size: int64(len(content)), ModifiedAt: i.now()}
	if i.objects[bucket] == nil {
		i.objects[bucket] = map[string]sensor.Object{}
	}
	i.objects[bucket][key] = o
	return o
}

// Remove deletes an object.
func (i *Items) Remove(bucket, key string) { delete(i.objects[bucket], key) }

// Send sends a message. A client that sends it again sends another one.
func (i *Items) Send(url, id, body string) {
	i.messages[url] = append(i.messages[url], &message{Message: sensor.Message{ID: id, Body: body, SentAt: i.now()}})
}

// Left counts the messages of a queue.
func (i *Items) Left(url string) int { return len(i.messages[url]) }

// now returns the time by the clock of the store, which has whole seconds.
func (i *Items) now() time.Time { return i.W.Time.Now.Add(i.Ahead).Truncate(time.Second) }

// call makes a call whose request or response can be lost.
func (i *Items) call(ctx context.Context, by sensor.Credentials, what string, do func()) error {
	w := i.W
	if by != (sensor.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}) {
		w.Fail("%s with the credentials %+v, want those of the secret", what, by)
	}
	w.MaybeCrash()
	w.MaybeInterrupt()
	w.Time.Sleep(w.UpTo(2 * time.Second))
	if ctx.Err() != nil {
		return fault.New(fault.Unavailable, "the call was interrupted")
	}
	if w.Chance(i.Faults / 2) {
		return fault.New(fault.Unavailable, "request lost")
	}
	do()
	w.MaybeCrash()
	if w.Chance(i.Faults / 2) {
		return fault.New(fault.Unavailable, "response lost")
	}
	return nil
}

// Objects implements port.Buckets.
func (i *Items) Objects(ctx context.Context, of sensor.Bucket, by sensor.Credentials, after string) (page port.ObjectPage, err error) {
	err = i.call(ctx, by, "list of "+of.Name, func() {
		for _, key := range slices.Sorted(maps.Keys(i.objects[of.Name])) {
			if !strings.HasPrefix(key, of.Prefix) || key <= after {
				continue
			}
			if page.More = len(page.Objects) == i.Page; page.More {
				break
			}
			page.Objects = append(page.Objects, i.objects[of.Name][key])
		}
		page.At = i.now()
	})
	return page, err
}

// Messages implements port.Queues. Messages are received in any order, and rarely although they are
// hidden.
func (i *Items) Messages(ctx context.Context, of sensor.Queue, by sensor.Credentials) (found []sensor.Message, err error) {
	err = i.call(ctx, by, "receive of "+of.URL, func() {
		all := i.messages[of.URL]
		for _, n := range i.W.Random.Perm(len(all)) {
			m := all[n]
			if len(found) == port.MaxMessages || m.hidden.After(i.W.Time.Now) && !i.W.Chance(i.Faults) {
				continue
			}
			m.hidden = i.W.Time.Now.Add(port.VisibleAfter)
			if m.received++; m.received > 1 {
				i.Repeated++
			}
			m.Receipt = fmt.Sprintf("%s/%d", m.ID, m.received)
			found = append(found, m.Message)
		}
	})
	return found, err
}

// DeleteMessages implements port.Queues. A deleted message is rarely kept.
func (i *Items) DeleteMessages(ctx context.Context, of sensor.Queue, by sensor.Credentials, messages []sensor.Message) error {
	return i.call(ctx, by, "delete from "+of.URL, func() {
		for _, gone := range messages {
			i.messages[of.URL] = slices.DeleteFunc(i.messages[of.URL], func(m *message) bool {
				return m.ID == gone.ID && !i.W.Chance(i.Faults)
			})
		}
	})
}
