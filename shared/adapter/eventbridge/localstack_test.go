//go:build localstack

package eventbridge_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/eventbridge"
)

// TestPublisherOnLocalStack receives all of Sortie's events through a rule and a queue.
func TestPublisherOnLocalStack(t *testing.T) {
	t.Parallel()
	cfg := awstest.LocalStack(t)
	porttest.Publisher(t, func(t *testing.T) porttest.PublisherHarness {
		t.Helper()
		name := "publisher-" + rand.Text()
		var queue struct{ QueueUrl string }
		awstest.Prepare(t, cfg, "AmazonSQS.CreateQueue", map[string]any{"QueueName": name}, &queue)
		awstest.Prepare(t, cfg, "AWSEvents.CreateEventBus", map[string]any{"Name": name}, nil)
		awstest.Prepare(t, cfg, "AWSEvents.PutRule", map[string]any{
			"Name": name, "EventBusName": name, "EventPattern": `{"source":["` + eventbridge.Source + `"],"detail-type":[{"prefix":"job."}]}`,
		}, nil)
		awstest.Prepare(t, cfg, "AWSEvents.PutTargets", map[string]any{
			"Rule": name, "EventBusName": name,
			"Targets": []map[string]string{{"Id": "queue", "Arn": "arn:aws:sqs:" + cfg.Region + ":000000000000:" + name}},
		}, nil)
		publisher, err := eventbridge.New(cfg, name)
		if err != nil {
			t.Fatal(err)
		}
		return porttest.PublisherHarness{
			Publisher: publisher, TooLarge: 1_000_000,
			Listen: func(ctx context.Context) ([]porttest.Delivered, bool) {
				for ctx.Err() == nil {
					if heard := receive(t, queue.QueueUrl); len(heard) > 0 {
						return heard, true
					}
				}
				return nil, false
			},
		}
	})
}

// receive waits one second for messages and removes them from the queue.
func receive(t *testing.T, queue string) (heard []porttest.Delivered) {
	t.Helper()
	cfg := awstest.LocalStack(t)
	var batch struct {
		Messages []struct{ Body, ReceiptHandle string }
	}
	awstest.Prepare(t, cfg, "AmazonSQS.ReceiveMessage",
		map[string]any{"QueueUrl": queue, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 1}, &batch)
	for _, m := range batch.Messages {
		var event struct {
			Type   string `json:"detail-type"`
			Detail json.RawMessage
		}
		if err := json.Unmarshal([]byte(m.Body), &event); err != nil {
			t.Fatal(err)
		}
		heard = append(heard, porttest.Delivered{Type: event.Type, Detail: event.Detail})
		awstest.Prepare(t, cfg, "AmazonSQS.DeleteMessage", map[string]any{"QueueUrl": queue, "ReceiptHandle": m.ReceiptHandle}, nil)
	}
	return heard
}
