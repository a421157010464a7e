// Package sqs queues webhooks in a standard queue of Amazon SQS.
//
// A message is the JSON of a port.Wake without its delay, which is the delay of the message.
// The queue may deliver messages more than once, late, and out of order.
package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// maxEntries is the largest number of messages in one request (SQS quotas).
const maxEntries = 10

// maxTries is how often a call is made. It is also how often messages of a request are sent
// that the queue has not accepted.
const maxTries = 4

// Wakes sends to one queue. It is safe for concurrent use.
type Wakes struct {
	client *sqs.Client
	url    string
}

var _ port.Wakes = (*Wakes)(nil)

// New returns Wakes to the queue with a URL. It makes no call.
func New(cfg aws.Config, url string) (*Wakes, error) {
	if url == "" {
		return nil, errors.New("cannot use the queue of webhooks: its URL is missing")
	}
	return &Wakes{sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.RetryMaxAttempts = maxTries }), url}, nil
}

// Wake implements port.Wakes. It rounds a delay up to a whole second, and limits it to
// port.MaxWakeDelay. The fault is Unavailable. Some of the webhooks may then be queued.
func (w *Wakes) Wake(ctx context.Context, wakes ...port.Wake) error {
	for batch := range slices.Chunk(wakes, maxEntries) {
		entries := make([]types.SendMessageBatchRequestEntry, len(batch))
		for i, wake := range batch {
			body, err := json.Marshal(wake)
			if err != nil {
				return fmt.Errorf("cannot encode a wake: %w", err)
			}
			delay := (min(max(wake.Delay, 0), port.MaxWakeDelay) + time.Second - 1) / time.Second
			entries[i] = types.SendMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)), DelaySeconds: int32(delay), //nolint:gosec // at most 900
			}
		}
		if err := w.send(ctx, entries); err != nil {
			return fault.Wrap(err, fault.Unavailable, "the queue of webhooks is unavailable")
		}
	}
	return nil
}

// send sends messages, and repeats those that the queue has not accepted.
func (w *Wakes) send(ctx context.Context, entries []types.SendMessageBatchRequestEntry) error {
	for range maxTries {
		answer, err := w.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &w.url, Entries: entries})
		if err != nil {
			return fmt.Errorf("cannot send: %w", err)
		}
		entries = slices.DeleteFunc(entries, func(e types.SendMessageBatchRequestEntry) bool {
			return slices.ContainsFunc(answer.Successful, func(done types.SendMessageBatchResultEntry) bool { return aws.ToString(done.Id) == *e.Id })
		})
		if len(entries) == 0 {
			return nil
		}
		for _, failed := range answer.Failed {
			if failed.SenderFault {
				return fmt.Errorf("the queue refuses a message: %s, %s", aws.ToString(failed.Code), aws.ToString(failed.Message))
			}
		}
	}
	return fmt.Errorf("%d messages are not accepted after %d tries", len(entries), maxTries)
}
