// Package deliver delivers events to webhooks. A queue invokes it with the webhooks that are
// due.
//
// A message only names a webhook. Events, attempts and their times are in the store. So a
// message may be delivered twice, late, or merged with another one. The sweep compensates for a
// lost message. The response names the failed messages, which the queue delivers again.
package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// Batch is a batch of messages, as Lambda delivers it.
type Batch struct {
	Records []Message `json:"Records"`
}

// Message is a message of the queue. Its body is the JSON of a port.Wake.
type Message struct {
	ID   string `json:"messageId"`
	Body string `json:"body"`
}

// Answer lists the messages to deliver again.
type Answer struct {
	Failures []Failure `json:"batchItemFailures"`
}

// Failure is a message to deliver again.
type Failure struct {
	ID string `json:"itemIdentifier"`
}

// Deliver makes the due attempts of a webhook.
type Deliver func(ctx context.Context, ref webhook.Ref) error

// Handler returns the handler of the queue. The webhooks of a batch are delivered concurrently,
// so a slow receiver does not delay the others. Messages about the same webhook are one
// delivery, because its lease belongs to the process. report is called for each failure.
func Handler(deliver Deliver, report func(ctx context.Context, messageID string, err error)) func(context.Context, Batch) (Answer, error) {
	return func(ctx context.Context, batch Batch) (Answer, error) {
		failed := make([]bool, len(batch.Records))
		messages := map[webhook.Ref][]int{}
		for i, m := range batch.Records {
			wake, err := decode(m.Body)
			if err != nil {
				report(ctx, m.ID, err) // it would fail again
				continue
			}
			ref := webhook.Ref{Tenant: wake.Tenant, ID: wake.Webhook}
			messages[ref] = append(messages[ref], i)
		}
		var each sync.WaitGroup
		for ref, indexes := range messages {
			each.Go(func() {
				if err := deliver(ctx, ref); err != nil {
					for _, i := range indexes {
						report(ctx, batch.Records[i].ID, err)
						failed[i] = true
					}
				}
			})
		}
		each.Wait()
		answer := Answer{Failures: []Failure{}}
		for i, m := range batch.Records {
			if failed[i] {
				answer.Failures = append(answer.Failures, Failure{m.ID})
			}
		}
		return answer, nil
	}
}

func decode(body string) (wake port.Wake, err error) {
	if err := json.Unmarshal([]byte(body), &wake); err != nil {
		return wake, fmt.Errorf("malformed message: %w", err)
	}
	if wake.Tenant == "" || !webhook.ValidID(wake.Webhook) {
		return wake, errors.New("malformed message, want a tenant and a webhook")
	}
	return wake, nil
}
