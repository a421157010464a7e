package tenantaws

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.Queues = (*Client)(nil)

// queue returns the API of a queue, and the host of its address.
func (c *Client) queue(of sensor.Queue, by sensor.Credentials) (api *sqs.Client, base string, done func(), err error) {
	base, client, done, err := c.endpoint(of.URL)
	if err != nil {
		return nil, "", nil, err
	}
	return sqs.New(sqs.Options{
		Region: of.SigningRegion(), BaseEndpoint: aws.String(base), Credentials: credentials(by), HTTPClient: client, RetryMaxAttempts: tries,
	}), base, done, nil
}

// Messages implements port.Queues.
func (c *Client) Messages(ctx context.Context, of sensor.Queue, by sensor.Credentials) ([]sensor.Message, error) {
	api, base, done, err := c.queue(of, by)
	if err != nil {
		return nil, err
	}
	defer done()
	out, err := api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(of.URL), MaxNumberOfMessages: port.MaxMessages, VisibilityTimeout: int32(port.VisibleAfter / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
	})
	if err != nil {
		return nil, failed(ctx, err, base, "receive messages")
	}
	found := make([]sensor.Message, 0, len(out.Messages))
	for _, m := range out.Messages[:min(len(out.Messages), port.MaxMessages)] {
		message := sensor.Message{ID: aws.ToString(m.MessageId), Receipt: aws.ToString(m.ReceiptHandle), Body: aws.ToString(m.Body)}
		if at, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
			message.SentAt = time.UnixMilli(at).UTC()
		}
		found = append(found, message)
	}
	return found, nil
}

// DeleteMessages implements port.Queues.
func (c *Client) DeleteMessages(ctx context.Context, of sensor.Queue, by sensor.Credentials, messages []sensor.Message) error {
	api, base, done, err := c.queue(of, by)
	if err != nil {
		return err
	}
	defer done()
	entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.Receipt)}
	}
	out, err := api.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(of.URL), Entries: entries})
	if err != nil {
		return failed(ctx, err, base, "delete messages")
	}
	if len(out.Failed) > 0 {
		return fault.New(fault.Unavailable, "cannot delete messages: the queue kept %d of %d", len(out.Failed), len(messages))
	}
	return nil
}
