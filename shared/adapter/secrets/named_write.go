package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/port"
)

// PutNamed stores a named secret of a stage and replaces an earlier one. Readers see the new
// value within NamedTTL.
func PutNamed(ctx context.Context, cfg aws.Config, stage, tenant, name, value string) error {
	id, err := jobSecret(stage, tenant, name)
	if err != nil {
		return err
	}
	if !limit.ValidSecret(value) {
		return fmt.Errorf("invalid value of %d bytes, want 1 to %d bytes of UTF-8 without a NUL", len(value), limit.Secret)
	}
	client := secretsmanager.NewFromConfig(cfg)
	_, err = client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &id, SecretString: &value})
	if _, absent := errors.AsType[*types.ResourceNotFoundException](err); absent {
		_, err = client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
			Name: &id, SecretString: &value, Description: aws.String("a secret of the tenant's jobs"),
		})
	}
	if err != nil {
		return fmt.Errorf("cannot write the secret %s: %w", id, err)
	}
	return nil
}

// ListNamed returns the names of a tenant's secrets in a stage, sorted.
func ListNamed(ctx context.Context, cfg aws.Config, stage, tenant string) ([]string, error) {
	prefix := Name(stage, Jobs+tenant+"/")
	pages := secretsmanager.NewListSecretsPaginator(secretsmanager.NewFromConfig(cfg), &secretsmanager.ListSecretsInput{
		Filters: []types.Filter{{Key: types.FilterNameStringTypeName, Values: []string{prefix}}},
	})
	var names []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot list the secrets %s*: %w", prefix, err)
		}
		for _, entry := range page.SecretList {
			if name, ok := strings.CutPrefix(aws.ToString(entry.Name), prefix); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// DeleteNamed removes a named secret of a stage at once. It returns port.ErrNotFound if it does
// not exist.
func DeleteNamed(ctx context.Context, cfg aws.Config, stage, tenant, name string) error {
	id, err := jobSecret(stage, tenant, name)
	if err != nil {
		return err
	}
	client := secretsmanager.NewFromConfig(cfg)
	// DeleteSecret without a recovery window also succeeds for an unknown name.
	_, err = client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &id})
	if err == nil {
		_, err = client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &id, ForceDeleteWithoutRecovery: aws.Bool(true)})
	}
	if _, absent := errors.AsType[*types.ResourceNotFoundException](err); absent {
		err = port.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("cannot delete the secret %s: %w", id, err)
	}
	return nil
}
