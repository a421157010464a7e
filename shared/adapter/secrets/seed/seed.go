// Package seed reads the seed of the key of events from an encrypted parameter of Systems
// Manager. Unlike a secret, a parameter is free. It is a package of its own because the client
// of Systems Manager is large and only functions need it.
package seed

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// Open returns the seed of the key of events. If the parameter does not exist, the first read
// creates it with a random seed. Only one of concurrent processes creates it. Open makes no
// call.
func Open(cfg aws.Config, name string, config secrets.Config) (*secrets.Secret[secrets.Events], error) {
	p := parameter{ssm.NewFromConfig(cfg), name}
	return secrets.OpenFrom[secrets.Events](name, config, secrets.Source{Text: p.text, Fill: "aws ssm delete-parameter --name " + name})
}

// parameter is a SecureString with a document of the type secrets.Events.
type parameter struct {
	client *ssm.Client
	name   string
}

// text returns the value of the parameter. It creates the parameter if it does not exist.
func (p parameter) text(ctx context.Context) (string, error) {
	text, err := p.get(ctx)
	if err != nil || text != "" {
		return text, err
	}
	made, err := json.Marshal(secrets.Events{Seed: rand.Text() + rand.Text()})
	if err != nil {
		return "", errors.New("cannot encode a seed")
	}
	_, err = p.client.PutParameter(ctx, &ssm.PutParameterInput{
		Name: &p.name, Value: aws.String(string(made)), Type: types.ParameterTypeSecureString,
		Description: aws.String("the key that signs events"),
	})
	if _, exists := errors.AsType[*types.ParameterAlreadyExists](err); err != nil && !exists {
		return "", fmt.Errorf("cannot make the parameter: %w", err)
	}
	return p.get(ctx) // another process may have created it
}

// get returns the value, or "" if the parameter does not exist.
func (p parameter) get(ctx context.Context) (string, error) {
	answer, err := p.client.GetParameter(ctx, &ssm.GetParameterInput{Name: &p.name, WithDecryption: aws.Bool(true)})
	if _, absent := errors.AsType[*types.ParameterNotFound](err); absent {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return aws.ToString(answer.Parameter.Value), nil
}
