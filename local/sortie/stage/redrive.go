package stage

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// Redriven counts the changes that Redrive published, and those left because they could not be
// published.
type Redriven struct {
	Redriven int `json:"redriven"`
	Left     int `json:"left"`
}

// Redrive makes the relay publish the events that it has set aside. Subscribers
// deduplicate events by their ids.
func (s *Stage) Redrive(ctx context.Context) (Redriven, error) {
	called, err := lambda.NewFromConfig(s.cfg).Invoke(ctx, &lambda.InvokeInput{
		FunctionName: s.function("relay"), Payload: []byte(`{"redrive":true}`),
	})
	if err != nil {
		return Redriven{}, fmt.Errorf("cannot invoke %s: %w", *s.function("relay"), err)
	}
	if called.FunctionError != nil {
		return Redriven{}, fmt.Errorf("%s fails: %s", *s.function("relay"), called.Payload)
	}
	var done Redriven
	if err := json.Unmarshal(called.Payload, &done); err != nil {
		return Redriven{}, fmt.Errorf("malformed answer of %s: %w", *s.function("relay"), err)
	}
	return done, nil
}
