package secrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/sortie-dev/sortie/shared/domain/access"
)

// ReadClients returns the document of a stage's clients without a cache. The document is empty
// if the secret was never filled.
func ReadClients(ctx context.Context, cfg aws.Config, stage string) (Clients, error) {
	name := Name(stage, Clients{}.kind())
	answer, err := secretsmanager.NewFromConfig(cfg).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if _, absent := errors.AsType[*types.ResourceNotFoundException](err); absent {
		return Clients{}, nil
	}
	if err != nil {
		return Clients{}, fmt.Errorf("cannot read the secret %s: %w", name, err)
	}
	document, err := parse[Clients]([]byte(aws.ToString(answer.SecretString)))
	if err != nil {
		return Clients{}, fmt.Errorf("the secret %s is not usable: %w", name, err)
	}
	clients, _ := document.(Clients)
	return clients, nil
}

// UpdateClients replaces the records in a stage's secret with the result of change. If calls
// are concurrent, the last one wins.
func UpdateClients(ctx context.Context, cfg aws.Config, stage string, change func([]access.Token) ([]access.Token, error)) error {
	clients, err := ReadClients(ctx, cfg, stage)
	if err != nil {
		return err
	}
	if clients.Records, err = change(clients.Records); err != nil {
		return err
	}
	_, err = Put(ctx, cfg, stage, clients)
	return err
}
