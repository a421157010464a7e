package items

import (
	"crypto/md5" //nolint:gosec // as the API does
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Queue has the JSON protocol of Amazon SQS, as far as sensors use it. Messages are hidden after a
// receive, and are delivered more than once if they are not deleted.
type Queue struct {
	// URL is the address of the queue.
	URL string

	mu       sync.Mutex
	messages []message
	n        int
	// Received counts the deliveries of each message.
	received map[string]int
}

type message struct {
	id, body, receipt string
	sentAt, hidden    time.Time
}

// Send appends a message and returns its id.
func (q *Queue) Send(body string) (id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n++
	id = fmt.Sprintf("00000000-0000-4000-8000-%012d", q.n)
	q.messages = append(q.messages, message{id: id, body: body, sentAt: clock.System{}.Now()})
	return id
}

// Left returns the ids of the messages.
func (q *Queue) Left() (ids []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages {
		ids = append(ids, m.id)
	}
	return ids
}

type call struct {
	QueueURL            string `json:"QueueUrl"`
	MaxNumberOfMessages int
	VisibilityTimeout   int
	Entries             []struct {
		ID            string `json:"Id"`
		ReceiptHandle string
	}
}

// ServeHTTP implements http.Handler.
func (q *Queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	refuse := func(code string) {
		reply(w, http.StatusBadRequest, map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": code})
	}
	var in call
	switch err := json.NewDecoder(r.Body).Decode(&in); {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+Owner.ID+"/"):
		refuse("InvalidClientTokenId")
	case err != nil || in.QueueURL != q.URL:
		refuse("QueueDoesNotExist")
	default:
		q.mu.Lock()
		defer q.mu.Unlock()
		answers := map[string]func(call) any{"AmazonSQS.ReceiveMessage": q.receive, "AmazonSQS.DeleteMessageBatch": q.remove}
		answer, ok := answers[r.Header.Get("X-Amz-Target")]
		if !ok {
			refuse("InvalidAction")
			return
		}
		reply(w, http.StatusOK, answer(in))
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (q *Queue) receive(in call) any {
	now := clock.System{}.Now()
	var found []map[string]any
	for i := range q.messages {
		m := &q.messages[i]
		if m.hidden.After(now) || len(found) == in.MaxNumberOfMessages {
			continue
		}
		m.hidden = now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
		q.received[m.id]++
		m.receipt = fmt.Sprintf("%s-%d", m.id, q.received[m.id])
		found = append(found, map[string]any{
			"MessageId": m.id, "ReceiptHandle": m.receipt, "Body": m.body, "MD5OfBody": fmt.Sprintf("%x", md5.Sum([]byte(m.body))), //nolint:gosec // as the API does
			"Attributes": map[string]string{"SentTimestamp": strconv.FormatInt(m.sentAt.UnixMilli(), 10)},
		})
	}
	return map[string]any{"Messages": found}
}

func (q *Queue) remove(in call) any {
	var done []map[string]string
	for _, e := range in.Entries {
		q.messages = slices.DeleteFunc(q.messages, func(m message) bool { return m.receipt != "" && m.receipt == e.ReceiptHandle })
		done = append(done, map[string]string{"Id": e.ID})
	}
	return map[string]any{"Successful": done}
}
