package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Pushes sends to one FIFO queue, with a message group for each tenant. SQS delivers the
// messages of a group to one receiver at a time. A message is the JSON of a Push. It is safe
// for concurrent use.
type Pushes struct {
	client *sqs.Client
	url    string
}

var _ port.Pushes = (*Pushes)(nil)

// Push is the body of a message.
type Push struct {
	Tenant string `json:"tenant"`
}

// NewPushes returns Pushes to the queue with a URL. It makes no call.
func NewPushes(cfg aws.Config, url string) (*Pushes, error) {
	if url == "" {
		return nil, errors.New("cannot use the queue of connections: its URL is missing")
	}
	return &Pushes{sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.RetryMaxAttempts = maxTries }), url}, nil
}

// Push implements port.Pushes. SQS drops a message if it has received one with the same tenant
// and reason in the last five minutes.
func (p *Pushes) Push(ctx context.Context, tenant, reason string) error {
	body, err := json.Marshal(Push{tenant})
	if err != nil {
		return fmt.Errorf("cannot encode a push: %w", err)
	}
	_, err = p.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &p.url, MessageBody: aws.String(string(body)),
		MessageGroupId: aws.String(digest(tenant)), MessageDeduplicationId: aws.String(digest(tenant + "\x00" + reason)),
	})
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the queue of connections is unavailable")
	}
	return nil
}

// digest returns an id for any text, because SQS permits only 128 ASCII characters.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
