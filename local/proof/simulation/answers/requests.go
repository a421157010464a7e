package answers

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/prompts"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// contextTokens is the context of the engines: large requests fit.
const contextTokens = 1 << 20

// pixel are the first bytes of an image.
const pixel = "\x89PNG\r\n\x1a\nan image"

// more is what a completion has beside its form. The name of its task decides it.
type more struct {
	// choices is the number of answers.
	choices int
	// large: the request is an object in the bucket.
	large bool
	// image is a data URL, and artifact an artifact.
	image, artifact bool
	// deleted: the client deletes the answer, while it is generated or later.
	deleted bool
}

// moreOf returns what the request of a task has.
func (w *world) moreOf(name string) (m more) {
	m = more{choices: 1, large: w.task("large "+name) == 0, deleted: w.task("deleted "+name) == 0}
	if w.formOf(name) != texts {
		return m
	}
	m.choices = []int{1, 1, 2, 3, 4}[w.task("choices "+name)]
	image := w.task("image " + name)
	m.image, m.artifact = image == 0, image == 1 && w.image != ""
	return m
}

// addTo adds it to the request of a client.
func (m more) addTo(c *client) {
	q := &c.in.Request
	if m.choices > 1 {
		q.Choices = m.choices
	}
	text := &q.Prompt
	if len(q.Messages) > 0 {
		text = &q.Messages[0].Content
	}
	if m.large {
		*text += " " + strings.Repeat("x", inference.RecordSize)
	}
	if !m.image && !m.artifact {
		return
	}
	image := &port.Image{MediaType: "image/png", Data: []byte(pixel)}
	if m.artifact {
		image = &port.Image{Artifact: c.w.image}
	}
	*q = inference.Request{Choices: q.Choices, Messages: []port.Message{{Role: "user", Parts: []port.ContentPart{{Text: q.Prompt}, {Image: image}}}}}
}

// storeImage stores an image as an artifact, in half of the worlds.
func (w *world) storeImage(ctx context.Context) {
	if w.roll("image").IntN(2) == 0 {
		return
	}
	registry := artifacts.NewRegistry(w.raw.store, w.outputs, bubble, w.log, func(int) string { return "image" }, retention, inference.ImageSize)
	for range 100 {
		a, _, err := registry.Create(ctx, tenant, "client", artifact.Draft{
			Kind: "image", Bytes: &artifact.Bytes{MediaType: "image/png", Content: strings.NewReader(pixel), Size: int64(len(pixel))},
		})
		if err == nil {
			w.image = a.ID
			return
		}
		w.note("image: %v", err)
	}
}

// choice checks the end of an answer that is not the last one of its task.
func (r *reader) choice(e *inference.ChoiceEnd) {
	if e.Index != r.choices {
		r.w.fail("a reader of %s got the end of answer %d as number %d", r.task.id, e.Index, r.choices)
	}
	r.choices++
}

// checkChoices checks the answers of a run in its stream: each has its tokens, and none is missing or
// doubled before the next one.
func (w *world) checkChoices(r run.Run, all []inference.Record) {
	if r.Work.Inference.Workload != string(port.WorkloadCompletion) {
		return
	}
	name := names.FindString(string(r.Work.Inference.Request))
	n, ended, pieces := w.moreOf(name).choices, 0, 0
	for _, record := range all {
		pieces += len(record.Tokens)
		switch {
		case record.ChoiceEnd != nil:
			if each := r.Work.Inference.MaxTokens / n; record.ChoiceEnd.Index != ended || pieces != each {
				w.fail("the stream of %s has %d tokens and the end %+v of answer %d, want %d", r.ID, pieces, record.ChoiceEnd, ended, each)
			}
			ended, pieces = ended+1, 0
		case record.End != nil:
			if ended != n-1 {
				w.fail("the stream of %s ends after %d answers, want %d", r.ID, ended+1, n)
			}
			if w.outcome.Several += ended; w.moreOf(name).large {
				w.outcome.Large++
			}
		}
	}
}

// discard deletes the answer of a task at any time, and retries until the call is answered.
func (w *world) discard(draw *rand.Rand, t *task) {
	w.sleep(upTo(draw, moments[draw.IntN(len(moments))]))
	w.mu.Lock()
	t.deleted = true
	w.mu.Unlock()
	for w.ctx.Err() == nil {
		err := w.once(draw, func(ctx context.Context, p *process) error { return p.tasks.Discard(ctx, t.who, t.id) })
		w.note("deletion of %s: %v", t.name, err)
		if err == nil || fault.Is(err, fault.NotFound) { // the answer of an earlier call was lost
			return
		}
		w.sleep(upTo(draw, 5*time.Second))
	}
}

// isDeleted reports whether the client of a task has begun to delete its answer.
func (w *world) isDeleted(t *task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return t.deleted
}

// checkDeleted checks that nothing but the usage is left of a deleted answer. A process may end the stream
// again after its removal; if its call that removes it is lost too, a record without a part of the
// answer is left.
func (w *world) checkDeleted(ctx context.Context, r run.Run) {
	w.outcome.Deleted++
	head, err := w.raw.feed.Head(ctx, inference.StreamOf(tenant, r.TaskID))
	state, bad := inference.DecodeState(head.State)
	if err != nil || bad != nil || state.HasContent() || !r.AnswerDeleted || r.Input() != nil || len(r.Work.Inference.Request) > 0 {
		w.fail("the answer of %s was deleted, and it has a stream of %d records (%v), deleted %t, the input %v and %d bytes of the request",
			r.ID, head.Newest, err, r.AnswerDeleted, r.Input(), len(r.Work.Inference.Request))
	}
}

// none are no resources beside the tickets.
type none struct{}

func (none) Expired(context.Context, string, int) ([]port.ResourceRef, string, error) {
	return nil, "", nil
}

func (none) Collect(context.Context, string, string) error { return nil }

// checkObjects lets the tickets of large requests become due, sweeps them, and checks that each object
// of a request belongs to a run.
func (w *world) checkObjects(ctx context.Context) {
	_ = clock.Sleep(ctx, bubble, inference.TicketTime+time.Second)
	due := prompts.New(w.raw.store, w.outputs, bubble).Beside(none{})
	for round, found := 0, 1; found > 0; round++ {
		found = 0
		for after := ""; ; {
			refs, next, err := due.Expired(ctx, after, 100)
			if err != nil || round > 1 {
				w.fail("tickets are left after %d sweeps: %v, %v", round, refs, err)
				return
			}
			for _, ref := range refs {
				if err := due.Collect(ctx, ref.Tenant, ref.ID); err != nil {
					w.fail("cannot collect the ticket of %s: %v", ref.ID, err)
				}
			}
			if found, after = found+len(refs), next; next == "" {
				break
			}
		}
	}
	owned := map[string]bool{}
	for _, r := range w.stored(ctx) {
		if input := r.Input(); input != nil {
			owned[input.Key] = true
			if w.outputs.Content(port.Accepted, input.Key) == "" {
				w.fail("the request of %s is lost", r.ID)
			}
		}
	}
	for _, key := range w.outputs.Keys(port.Accepted) {
		if strings.HasSuffix(key, "/input") && !owned[key] {
			w.fail("the object %s belongs to no run", key)
		}
	}
}
