package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
)

// Put stores the document in the secret of a stage and returns the secret's
// name. The deployment of the stage creates the secret. Readers see the new
// document within their TTL.
func Put(ctx context.Context, cfg aws.Config, stage string, document Document) (name string, err error) {
	name = Name(stage, document.kind())
	text, err := json.Marshal(document)
	if err != nil {
		return name, fmt.Errorf("cannot write the secret %s: it is no JSON", name)
	}
	_, err = secretsmanager.NewFromConfig(cfg).PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: &name, SecretString: aws.String(string(text)),
	})
	if _, absent := errors.AsType[*types.ResourceNotFoundException](err); absent {
		return name, fmt.Errorf("there is no secret %s in this account and region; deploying the stage %s makes it", name, stage)
	}
	if err != nil {
		return name, fmt.Errorf("cannot write the secret %s: %w", name, err)
	}
	return name, nil
}
