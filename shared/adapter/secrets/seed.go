package secrets

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// SeedName returns the name of the parameter with the seed of a stage's key of events.
func SeedName(stage string) string { return "/sortie/" + stage + "/events" }

// OpenSeed returns the seed of the key of events: an encrypted parameter of Systems
// Manager, which costs nothing, unlike a secret. A parameter that does not exist is made
// with a random seed, by one of any number of processes. It makes no call.
func OpenSeed(cfg aws.Config, name string, config Config) (*Secret[Events], error) {
	p := parameter{ssm.NewFromConfig(cfg), name}
	return open[Events](name, config, source{p.text, "aws ssm delete-parameter --name " + name})
}

// parameter is a SecureString with an Events document.
type parameter struct {
	client *ssm.Client
	name   string
}

// text returns the value of the parameter, and makes it if it does not exist.
func (p parameter) text(ctx context.Context) (string, error) {
	text, err := p.get(ctx)
	if err != nil || text != "" {
		return text, err
	}
	made, err := json.Marshal(Events{Seed: rand.Text() + rand.Text()})
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
	return p.get(ctx) // another process may have made it
}

// get returns the value, "" if the parameter does not exist.
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
