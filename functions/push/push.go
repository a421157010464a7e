// Package push sends new events to the connections of a WebSocket API. A queue invokes it with
// the tenants that have new events for their connections.
//
// A message only names a tenant. Connections and their cursors are in the store. A failed push
// is not received again, because that would block the tenant until its message is visible.
// Instead the sweep queues each tenant with a connection once a minute.
package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Batch is a batch of messages, as Lambda delivers it.
type Batch struct {
	Records []Message `json:"Records"`
}

// Message is a message of the queue. Its body names a tenant.
type Message struct {
	ID   string `json:"messageId"`
	Body string `json:"body"`
}

// Answer counts the tenants of a batch.
type Answer struct {
	Pushed int `json:"pushed"`
	Failed int `json:"failed,omitempty"`
}

// Handler returns the handler of the queue. The tenants of a batch are served concurrently,
// each once. report is called for each failure.
func Handler(push func(ctx context.Context, tenant string) error, report func(ctx context.Context, tenant string, err error)) func(context.Context, Batch) (Answer, error) {
	return func(ctx context.Context, batch Batch) (answer Answer, err error) {
		tenants := map[string]bool{}
		for _, m := range batch.Records {
			tenant, err := decode(m.Body)
			if err != nil {
				report(ctx, "", fmt.Errorf("message %s: %w", m.ID, err))
				answer.Failed++
				continue
			}
			tenants[tenant] = true
		}
		var each sync.WaitGroup
		var mu sync.Mutex
		for tenant := range tenants {
			each.Go(func() {
				err := push(ctx, tenant)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					report(ctx, tenant, err)
					answer.Failed++
					return
				}
				answer.Pushed++
			})
		}
		each.Wait()
		return answer, nil
	}
}

func decode(body string) (string, error) {
	var push struct {
		Tenant string `json:"tenant"`
	}
	if err := json.Unmarshal([]byte(body), &push); err != nil {
		return "", fmt.Errorf("malformed message: %w", err)
	}
	if push.Tenant == "" {
		return "", errors.New("malformed message, want a tenant")
	}
	return push.Tenant, nil
}
